#include "support/trained_model.h"

namespace knap::test {

std::filesystem::path trained_model() {
    return KNAP_MODELS "/bytes-plain.gguf";
}

}  // namespace knap::test
