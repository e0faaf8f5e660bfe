// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini: fused matrices, heads that rotate in part, and frequency
// divisors of two kinds, for short and for long contexts.
#include <utility>

#include "model/architectures/architecture.h"
#include "model/architectures/sliding_window.h"

namespace knap {

Architecture arch_phi3() {
    TensorTable tensors = dense_decoder_tensors();
    for (const std::string_view name : {kLongFactors, kShortFactors}) {
        tensors.of_model.push_back(
            {name, &ModelTensors::rope_freqs, {Size::n_rot_half}, Presence::optional});
    }
    fuse_gate_and_up(tensors);
    return {.name = "phi3",
            .rope_pairing = RopePairing::halves,
            .tensors = std::move(tensors),
            // libllama ignores the window of these models.
            .fields = {kWindow, kPartialRotation, kLongRope}};
}

}  // namespace knap
