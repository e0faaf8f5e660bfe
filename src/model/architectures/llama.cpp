// Llama 1 to 3.x, and the many models of the same shape: Mistral 7B, SmolLM2, TinyLlama, Yi. With
// experts: Mixtral.
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_llama() {
    TensorTable tensors = llama_tensors();
    add_experts(tensors);
    return {.name = "llama",
            .rope_pairing = RopePairing::neighbours,
            .tensors = std::move(tensors),
            .experts = ExpertRules{.may_be_dense = true}};
}

}  // namespace knap
