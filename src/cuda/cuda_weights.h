// The weights of a model as the CUDA kernels take them.
#pragma once

#include <vector>

#include "kernels/cuda/pass.h"
#include "kernels/cuda/step_memory.h"
#include "model/config.h"
#include "model/weights.h"

namespace knap {

struct CudaWeights {
    struct Layer {
        const float* attn_norm = nullptr;
        const float* q_norm = nullptr;
        const float* k_norm = nullptr;
        const float* attn_post_norm = nullptr;
        const float* ffn_norm = nullptr;
        const float* ffn_post_norm = nullptr;
        CudaMatrix q, k, v, o;
        CudaMatrix gate, up, down;

        bool has_mlp() const { return down.strips != nullptr; }
        bool has_post_norm() const { return attn_post_norm != nullptr || ffn_post_norm != nullptr; }
    };
    std::vector<Layer> layers;
    CudaMatrix embedding;
    CudaMatrix head;
    const float* output_norm = nullptr;
};

// The matrices must be in strips.
CudaWeights cuda_weights(const ModelTensors& tensors);

// What decides how the step kernel uses the memory of a device.
StepNeeds step_needs(const ModelConfig& config, const ModelTensors& tensors);

}  // namespace knap
