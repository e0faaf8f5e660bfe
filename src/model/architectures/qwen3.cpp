// Qwen3, dense: queries and keys are normalised per head before rotation.
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_qwen3() {
    TensorTable tensors = dense_decoder_tensors();
    add_head_norms(tensors, Size::head_dim, Size::head_dim);
    return {"qwen3", RopePairing::halves, std::move(tensors)};
}

}  // namespace knap
