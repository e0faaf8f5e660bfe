// Products of matrices in strips with many columns of inputs.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/pass.h"

namespace knap {

// A block of threads computes a tile: eight strips, 64 columns.
inline constexpr int kTileStrips = 8;
inline constexpr int kTileColumns = 64;

struct ProductArguments {
    CudaShape shape;
    CudaBuffers buffers;
    CudaPhase phase;
    // int8 codes or 16-bit inputs, and the scales of codes; at least round_up(n_columns, 128)
    // columns, of which those beyond n_columns may hold anything.
    const std::uint8_t* inputs = nullptr;
    const float* scales = nullptr;
    const float* factors = nullptr;  // of the norm, by row of the pass; null: 1
    const int* rows_of = nullptr;    // the row of the pass that a column is; null: the same
    int stride = 0;                  // columns of inputs in memory; also of those written
    int n_columns = 0;
    int n_stages = 0;  // set by start_product
};

// Starts the product of those parts of the phase that have this type.
void start_product(const CudaDevice& device,
                   const ProductArguments& arguments,
                   ggml_type type,
                   cudaStream_t stream);

}  // namespace knap
