#include "model/architectures/layer_text.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace knap {
namespace {

template <typename Matches>
int count_layers(const ModelConfig& config, Matches matches) {
    return static_cast<int>(std::ranges::count_if(config.layers, matches));
}

void describe_attention(const ModelConfig& config, std::vector<std::string>& parts) {
    const auto has_window = [](const LayerSpec& layer) { return layer.window > 0; };
    const auto rotates_locally = [](const LayerSpec& layer) {
        return layer.rotation == Rotation::local;
    };
    const auto does_not_rotate = [](const LayerSpec& layer) {
        return layer.rotation == Rotation::none;
    };
    if (const int n = count_layers(config, has_window); n > 0) {
        const LayerSpec& first = *std::ranges::find_if(config.layers, has_window);
        parts.push_back(concat(n, " of ", config.n_layers, " attend to ", first.window, " tokens"));
    }
    if (const int n = count_layers(config, rotates_locally);
        n > 0 && config.local_rope.freq_base != config.rope.freq_base) {
        parts.push_back(concat(n, " rotate with base ", config.local_rope.freq_base));
    }
    if (const int n = count_layers(config, does_not_rotate); n > 0) {
        parts.push_back(concat(n, " of ", config.n_layers, " do not rotate"));
    }
    if (config.rope.n_rot < config.head_dim) {
        parts.push_back(concat(config.rope.n_rot, " of ", config.head_dim, " channels rotate"));
    }
    if (config.temperature.scale != 0) {
        parts.push_back(concat("attention sharpens every ", config.temperature.length, " tokens"));
    }
    if (config.soft_cap != 0) {
        parts.push_back(concat("scores capped at ", config.soft_cap));
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
    describe_attention(config, parts);
    if (config.activation == Activation::gelu) {
        parts.emplace_back("gelu");
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
