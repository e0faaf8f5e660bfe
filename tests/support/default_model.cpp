#include "support/default_model.h"

#include "cli/environment.h"

namespace knap::test {

std::filesystem::path default_model() {
    return find_default_model(read_environment());
}

}  // namespace knap::test
