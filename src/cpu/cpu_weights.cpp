#include "cpu/cpu_weights.h"

#include <algorithm>
#include <array>
#include <span>

#include "ggml-backend.h"

#include "kernels/matmul/matmul.h"
#include "model/packed_weight.h"
#include "model/row_invariance.h"

namespace knap {
namespace {

bool is_plain(const ggml_tensor* tensor) {
    return tensor == nullptr ||
           (tensor->type == GGML_TYPE_F32 && layout_of(tensor) == WeightLayout::plain);
}

bool is_packed(const ggml_tensor* weight) {
    return layout_of(weight) == WeightLayout::packed;
}

bool take_the_same_rows(std::span<const ggml_tensor* const> weights) {
    return std::ranges::all_of(weights, [&](const ggml_tensor* weight) {
        return is_packed(weight) && input_form(weight->type) == input_form(weights[0]->type);
    });
}

bool has_cpu_layer(const LayerWeights& layer) {
    const std::array small{layer.attn_norm,
                           layer.bq,
                           layer.bk,
                           layer.bv,
                           layer.bo,
                           layer.q_norm,
                           layer.k_norm,
                           layer.ffn_norm,
                           layer.ffn_gate_b,
                           layer.ffn_up_b,
                           layer.ffn_down_b,
                           layer.attn_post_norm,
                           layer.ffn_post_norm,
                           layer.attn_sinks,
                           layer.router_b,
                           layer.expert_gate_b,
                           layer.expert_up_b,
                           layer.expert_down_b};
    const std::array<const ggml_tensor*, 3> heads{layer.wq, layer.wk, layer.wv};
    const std::array<const ggml_tensor*, 2> gates{layer.ffn_gate, layer.ffn_up};
    const std::array<const ggml_tensor*, 2> expert_gates{layer.expert_gate, layer.expert_up};
    const bool has_mlp = layer.ffn_down != nullptr;
    const bool has_experts = layer.router != nullptr;
    return std::ranges::all_of(small, is_plain) && take_the_same_rows(heads) &&
           is_packed(layer.wo) &&
           (!has_mlp || (take_the_same_rows(gates) && is_packed(layer.ffn_down))) &&
           (!has_experts || (is_packed(layer.router) && take_the_same_rows(expert_gates) &&
                             is_packed(layer.expert_down)));
}

const float* numbers(const ggml_tensor* tensor) {
    return tensor != nullptr ? static_cast<const float*>(tensor->data) : nullptr;
}

}  // namespace

bool has_cpu_weights(const ModelConfig& config,
                     const ModelTensors& tensors,
                     const LayerShare& share) {
    const bool has_embedding = share.first_layer > 0 || tensors.token_embd == nullptr ||
                               layout_of(tensors.token_embd) == WeightLayout::plain;
    const bool has_head =
        share.end_layer < config.n_layers || tensors.output == nullptr ||
        (is_packed(tensors.output) && is_plain(tensors.output_norm) && is_plain(tensors.output_b));
    const auto layers = std::span(tensors.layers)
                            .subspan(static_cast<std::size_t>(share.first_layer),
                                     static_cast<std::size_t>(share.n_layers()));
    return has_embedding && has_head && std::ranges::all_of(layers, has_cpu_layer);
}

CpuMatrix cpu_matrix(const ggml_tensor* weight, const ggml_tensor* bias) {
    return {.matrix = weight != nullptr ? &packed_weight(weight)->matrix : nullptr,
            .bias = numbers(bias)};
}

std::vector<CpuLayer> cpu_layers(const ModelConfig& config,
                                 const ModelTensors& tensors,
                                 const LayerShare& share) {
    std::vector<CpuLayer> layers;
    for (int i = share.first_layer; i < share.end_layer; ++i) {
        const LayerWeights& layer = tensors.layers[static_cast<std::size_t>(i)];
        layers.push_back({.attn_norm = numbers(layer.attn_norm),
                          .q = cpu_matrix(layer.wq, layer.bq),
                          .k = cpu_matrix(layer.wk, layer.bk),
                          .v = cpu_matrix(layer.wv, layer.bv),
                          .o = cpu_matrix(layer.wo, layer.bo),
                          .q_norm = numbers(layer.q_norm),
                          .k_norm = numbers(layer.k_norm),
                          .attn_post_norm = numbers(layer.attn_post_norm),
                          .attn_sinks = numbers(layer.attn_sinks),
                          .ffn_norm = numbers(layer.ffn_norm),
                          .gate = cpu_matrix(layer.ffn_gate, layer.ffn_gate_b),
                          .up = cpu_matrix(layer.ffn_up, layer.ffn_up_b),
                          .down = cpu_matrix(layer.ffn_down, layer.ffn_down_b),
                          .ffn_post_norm = numbers(layer.ffn_post_norm),
                          .router = cpu_matrix(layer.router, layer.router_b),
                          .experts = {.gate = expert_matrix(layer.expert_gate, layer.expert_gate_b),
                                      .up = expert_matrix(layer.expert_up, layer.expert_up_b),
                                      .down = expert_matrix(layer.expert_down, layer.expert_down_b),
                                      .activation = config.activation}});
    }
    return layers;
}

}  // namespace knap
