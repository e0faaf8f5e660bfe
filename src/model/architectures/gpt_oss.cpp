// gpt-oss: experts with biases and a clamped activation, every second layer attends to a window,
// and every head has a score for a position without a value.
#include <algorithm>
#include <utility>

#include "model/architectures/architecture.h"
#include "model/architectures/sliding_window.h"
#include "model/config_reader.h"

namespace knap {
namespace {

void describe_gpt_oss(const ConfigReader& reader, ModelConfig& config) {
    constexpr int kPattern = 2;
    config.activation = Activation::clamped_swiglu;
    const int window = read_window(reader, 0);
    if (window == 0) {
        reader.fail_field(kWindow, "1 or more", "none");
    }
    config.local_rope = read_local_rope(reader, config.rope);
    set_windows(reader, window, kPattern, config);
}

// Their head and all of their biases are there.
void require_all(TensorTable& tensors) {
    for (TensorSpec<LayerWeights>& spec : tensors.of_layer) {
        spec.presence = Presence::required;
    }
    std::ranges::find(tensors.of_model, "output.weight", &TensorSpec<ModelTensors>::name)
        ->presence = Presence::required;
}

}  // namespace

Architecture arch_gpt_oss() {
    TensorTable tensors = dense_decoder_tensors();
    std::ranges::find(tensors.of_layer, &LayerWeights::ffn_norm, &TensorSpec<LayerWeights>::place)
        ->name = "post_attention_norm.weight";
    tensors.of_layer.push_back(
        {"attn_output.bias", &LayerWeights::bo, {Size::n_embd}, Presence::required});
    tensors.of_layer.push_back(
        {"attn_sinks.weight", &LayerWeights::attn_sinks, {Size::n_heads}, Presence::required});
    add_experts(tensors, /*has_biases=*/true);
    require_all(tensors);
    return {.name = "gpt-oss",
            .rope_pairing = RopePairing::halves,
            .tensors = std::move(tensors),
            .fields = {kWindow},
            .describe = describe_gpt_oss,
            .experts = ExpertRules{
                .gating = Gating::chosen, .normalises = false, .length = ExpertRules::Length::own}};
}

}  // namespace knap
