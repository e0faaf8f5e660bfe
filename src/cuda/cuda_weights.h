// The weights of a model as the CUDA kernels take them.
#pragma once

#include <vector>

#include "kernels/cuda/pass.h"
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
    bool has_halves = false;   // some matrix takes floats
    int max_copied_bytes = 0;  // to shared memory at once, of all matrices
};

// The matrices must be in strips.
CudaWeights cuda_weights(const ModelTensors& tensors);

}  // namespace knap
