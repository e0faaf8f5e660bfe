#include "base/error.h"
#include "hub/connection.h"

namespace knap {

std::unique_ptr<HubConnection> connect_to_hub(const HubAccess&, const HubObserver&) {
    fail("this knap was built without libcurl (KNAP_HUB=OFF): expected a model that is in the ",
         "cache folder, or a file");
}

}  // namespace knap
