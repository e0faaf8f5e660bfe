// ERNIE 4.5, dense.
#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_ernie4_5() {
    return {"ernie4_5", RopePairing::neighbours, dense_decoder_tensors()};
}

}  // namespace knap
