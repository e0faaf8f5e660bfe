#include "model/architectures/layer_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "model/architectures/architecture.h"

namespace knap {
namespace {

template <typename Matches>
int count_layers(const ModelConfig& config, Matches matches) {
    return static_cast<int>(std::ranges::count_if(config.layers, matches));
}

// Whether the layers of the architecture have a tensor with this place.
bool has_tensor(const ModelConfig& config, ggml_tensor* LayerWeights::*place) {
    const Architecture* architecture = find_architecture(config.architecture);
    return architecture != nullptr && std::ranges::find(architecture->tensors.of_layer, place,
                                                        &TensorSpec<LayerWeights>::place) !=
                                          architecture->tensors.of_layer.end();
}

void describe_rotation(const ModelConfig& config, std::vector<std::string>& parts) {
    const auto rotates_locally = [](const LayerSpec& layer) {
        return layer.rotation == Rotation::local;
    };
    const auto does_not_rotate = [](const LayerSpec& layer) {
        return layer.rotation == Rotation::none;
    };
    if (const int n = count_layers(config, rotates_locally);
        n > 0 && config.local_rope.freq_base != config.rope.freq_base) {
        parts.push_back(concat(n, " rotate with base ", config.local_rope.freq_base));
    }
    if (const int n = count_layers(config, does_not_rotate); n > 0) {
        parts.push_back(concat(n, " of ", config.n_layers, " do not rotate"));
    }
    const auto n_still_pairs = std::ranges::count_if(
        config.rope.divisors, [](float divisor) { return std::isinf(divisor); });
    if (const int n_rotating = config.rope.n_rot - 2 * static_cast<int>(n_still_pairs);
        n_rotating < config.head_dim) {
        parts.push_back(concat(n_rotating, " of ", config.head_dim, " channels rotate"));
    }
}

void describe_attention(const ModelConfig& config, std::vector<std::string>& parts) {
    const auto has_window = [](const LayerSpec& layer) { return layer.window > 0; };
    if (const int n = count_layers(config, has_window); n > 0) {
        const LayerSpec& first = *std::ranges::find_if(config.layers, has_window);
        parts.push_back(concat(n, " of ", config.n_layers, " attend to ", first.window, " tokens"));
    }
    describe_rotation(config, parts);
    if (has_tensor(config, &LayerWeights::q_norm)) {
        parts.emplace_back(config.head_norm == HeadNorm::whole_row ? "queries and keys normalised"
                           : config.head_norm == HeadNorm::after_rotation
                               ? "heads normalised after they rotate"
                               : "heads normalised");
    }
    if (config.temperature.scale != 0) {
        parts.push_back(concat("attention sharpens every ", config.temperature.length, " tokens"));
    }
    if (config.attention_scale != usual_attention_scale(config.head_dim)) {
        parts.push_back(concat("scores x", config.attention_scale));
    }
    if (config.soft_cap != 0) {
        parts.push_back(concat("scores capped at ", config.soft_cap));
    }
    if (has_tensor(config, &LayerWeights::attn_sinks)) {
        parts.emplace_back("a score without a value for each head");
    }
}

void describe_norms(const ModelConfig& config, std::vector<std::string>& parts) {
    if (has_tensor(config, &LayerWeights::attn_post_norm)) {
        parts.emplace_back(has_tensor(config, &LayerWeights::attn_norm)
                               ? "norms behind modules too"
                               : "norms only behind modules");
    }
}

void describe_experts(const ModelConfig& config, std::vector<std::string>& parts) {
    const auto has_experts = [](const LayerSpec& layer) { return layer.experts.has_value(); };
    const int n = count_layers(config, has_experts);
    if (n == 0) {
        return;
    }
    const ExpertSpec& experts = *std::ranges::find_if(config.layers, has_experts)->experts;
    parts.push_back(concat(n < config.n_layers ? concat(n, " with ") : std::string(),
                           experts.n_experts, " experts of ", experts.n_ff,
                           ", of which a token uses ", experts.n_used));
    if (experts.n_ff_shared > 0) {
        parts.push_back(concat("one of ", experts.n_ff_shared, " that every token uses"));
    }
}

}  // namespace

std::string describe_layers(const ModelConfig& config) {
    std::vector<std::string> parts;
    if (const int n = config.n_ignored_layers; n > 0) {
        parts.push_back(concat(n, " more ", n == 1 ? "predicts" : "predict",
                               " further tokens, and ", n == 1 ? "is" : "are", " ignored"));
    }
    describe_attention(config, parts);
    describe_norms(config, parts);
    if (config.activation != Activation::silu) {
        parts.emplace_back(config.activation == Activation::gelu ? "gelu" : "clamped swiglu");
    }
    describe_experts(config, parts);
    if (config.embedding_scale != 1) {
        parts.push_back(concat("embeddings x", config.embedding_scale));
    }
    if (config.residual_scale != 1) {
        parts.push_back(concat("residuals x", config.residual_scale));
    }
    if (config.logit_scale != 1) {
        parts.push_back(concat("logits x", config.logit_scale));
    }
    if (config.final_soft_cap != 0) {
        parts.push_back(concat("logits capped at ", config.final_soft_cap));
    }
    return join(parts, ", ");
}

}  // namespace knap
