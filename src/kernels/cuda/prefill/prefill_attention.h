// Attention of many rows.
#pragma once

#include <span>

#include <cuda_runtime.h>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/pass.h"

namespace knap {

struct AttentionArguments {
    CudaShape shape;
    CudaBuffers buffers;
    CudaPassData pass;
    int layer = 0;
    int group = 0;  // of CudaPassData::attentions
    bool gives_halves = false;
    int stride = 0;  // columns of the inputs that it writes
};

// Starts attention over keys and values that are all in the cache. `blocks` is the host's copy of
// those of the group.
void start_attention(const CudaDevice& device,
                     const AttentionArguments& arguments,
                     std::span<const CudaBlock> blocks,
                     cudaStream_t stream);

}  // namespace knap
