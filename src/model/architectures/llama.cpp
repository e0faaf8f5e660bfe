// Llama 1 to 3.x, and the many models of the same shape: Mistral 7B, SmolLM2, TinyLlama, Yi.
#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_llama() {
    return {"llama", RopePairing::neighbours, llama_tensors()};
}

}  // namespace knap
