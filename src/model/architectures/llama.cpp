// Llama 1 to 3.x, and the many models of the same shape: Mistral 7B, SmolLM2, TinyLlama, Yi.
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_llama() {
    TensorTable tensors = dense_decoder_tensors();
    tensors.of_model.push_back(
        {"rope_freqs.weight", &ModelTensors::rope_freqs, {Size::n_rot_half}, Presence::optional});
    tensors.of_layer.insert(
        tensors.of_layer.end(),
        {
            {"attn_output.bias", &LayerWeights::bo, {Size::n_embd}, Presence::optional},
            {"ffn_gate.bias", &LayerWeights::ffn_gate_b, {Size::n_ff}, Presence::optional},
            {"ffn_up.bias", &LayerWeights::ffn_up_b, {Size::n_ff}, Presence::optional},
            {"ffn_down.bias", &LayerWeights::ffn_down_b, {Size::n_embd}, Presence::optional},
        });
    return {"llama", RopePairing::neighbours, std::move(tensors)};
}

}  // namespace knap
