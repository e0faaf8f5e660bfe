// Qwen3: queries and keys are normalised per head before rotation. With experts, such as
// Qwen3-30B-A3B and Qwen3-Coder: qwen3moe.
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_qwen3() {
    TensorTable tensors = dense_decoder_tensors();
    add_head_norms(tensors, Size::head_dim, Size::head_dim);
    return {"qwen3", RopePairing::halves, std::move(tensors)};
}

Architecture arch_qwen3moe() {
    return with_experts(arch_qwen3(), "qwen3moe", {.length = ExpertRules::Length::own_or_share});
}

}  // namespace knap
