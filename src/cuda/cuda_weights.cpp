#include "cuda/cuda_weights.h"

#include <algorithm>

#include "kernels/cuda/strips.h"
#include "model/placement/strip_coverage.h"

namespace knap {
namespace {

const float* numbers(const ggml_tensor* tensor) {
    return tensor != nullptr ? static_cast<const float*>(tensor->data) : nullptr;
}

CudaMatrix matrix(const ggml_tensor* weight, const ggml_tensor* bias) {
    if (weight == nullptr) {
        return {};
    }
    return {.strips = static_cast<const std::uint8_t*>(weight->data),
            .bias = numbers(bias),
            .n_strips = static_cast<int>(weight->ne[1] / kStripRows),
            .n_units = static_cast<std::int16_t>(weight->ne[0] / strip_unit(weight->type).n_inputs),
            .type = static_cast<std::int16_t>(weight->type)};
}

}  // namespace

CudaWeights cuda_weights(const ModelTensors& tensors) {
    CudaWeights weights{.embedding = matrix(tensors.token_embd, nullptr),
                        .head = matrix(tensors.output, tensors.output_b),
                        .output_norm = numbers(tensors.output_norm)};
    for (const LayerWeights& layer : tensors.layers) {
        weights.layers.push_back({.attn_norm = numbers(layer.attn_norm),
                                  .q_norm = numbers(layer.q_norm),
                                  .k_norm = numbers(layer.k_norm),
                                  .attn_post_norm = numbers(layer.attn_post_norm),
                                  .ffn_norm = numbers(layer.ffn_norm),
                                  .ffn_post_norm = numbers(layer.ffn_post_norm),
                                  .q = matrix(layer.wq, layer.bq),
                                  .k = matrix(layer.wk, layer.bk),
                                  .v = matrix(layer.wv, layer.bv),
                                  .o = matrix(layer.wo, layer.bo),
                                  .gate = matrix(layer.ffn_gate, layer.ffn_gate_b),
                                  .up = matrix(layer.ffn_up, layer.ffn_up_b),
                                  .down = matrix(layer.ffn_down, layer.ffn_down_b)});
    }
    return weights;
}

StepNeeds step_needs(const ModelConfig& config, const ModelTensors& tensors) {
    std::vector<ggml_type> types{tensors.output->type};
    for (const LayerWeights& layer : tensors.layers) {
        for (const ggml_tensor* matrix : matrices(layer)) {
            if (matrix != nullptr) {
                types.push_back(matrix->type);
            }
        }
    }
    const bool has_post_norms = std::ranges::any_of(tensors.layers, [](const LayerWeights& layer) {
        return layer.attn_post_norm != nullptr || layer.ffn_post_norm != nullptr;
    });
    return step_needs(config, types, has_post_norms);
}

}  // namespace knap
