// The weights of a device's layers as our operators take them: packed matrices and plain arrays.
#pragma once

#include <vector>

#include "device/layer_map.h"
#include "graph/experts/expert_mlp.h"
#include "kernels/matmul/packed_matrix.h"
#include "model/config.h"
#include "model/weights.h"

namespace knap {

// A matrix with what is added to its product; null: none.
struct CpuMatrix {
    const PackedMatrix* matrix = nullptr;
    const float* bias = nullptr;
};

// Null where the model has no such weights.
struct CpuLayer {
    const float* attn_norm = nullptr;
    CpuMatrix q, k, v, o;
    const float* q_norm = nullptr;
    const float* k_norm = nullptr;
    const float* attn_post_norm = nullptr;
    const float* attn_sinks = nullptr;
    const float* ffn_norm = nullptr;
    CpuMatrix gate, up, down;  // of the MLP, or of the expert that every row uses
    const float* ffn_post_norm = nullptr;
    CpuMatrix router;
    ExpertMlp experts;

    bool has_experts() const { return router.matrix != nullptr; }
    bool has_dense_mlp() const { return down.matrix != nullptr; }
    bool has_mlp() const { return has_dense_mlp() || has_experts(); }
    bool has_post_norm() const { return attn_post_norm != nullptr || ffn_post_norm != nullptr; }
};

// Whether our operators can compute all of these layers, and the head if it is among them: every
// matrix is packed, and those that are multiplied with the same rows take them in the same form.
bool has_cpu_weights(const ModelConfig& config,
                     const ModelTensors& tensors,
                     const LayerShare& share);

CpuMatrix cpu_matrix(const ggml_tensor* weight, const ggml_tensor* bias);
std::vector<CpuLayer> cpu_layers(const ModelConfig& config,
                                 const ModelTensors& tensors,
                                 const LayerShare& share);

}  // namespace knap
