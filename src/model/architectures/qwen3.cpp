// Qwen3, dense: queries and keys are normalised per head before rotation.
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_qwen3() {
    TensorTable tensors = dense_decoder_tensors();
    tensors.of_layer.insert(
        tensors.of_layer.end(),
        {
            {"attn_q_norm.weight", &LayerWeights::q_norm, {Size::head_dim}, Presence::required},
            {"attn_k_norm.weight", &LayerWeights::k_norm, {Size::head_dim}, Presence::required},
        });
    return {"qwen3", RopePairing::halves, std::move(tensors)};
}

}  // namespace knap
