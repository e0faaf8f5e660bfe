#include "support/trained_model.h"

namespace knap::test {

std::filesystem::path trained_model() {
    return KNAP_ROOT "/models/bytes-plain.gguf";
}

}  // namespace knap::test
