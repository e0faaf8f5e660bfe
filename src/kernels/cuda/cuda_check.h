// Turns errors of the CUDA runtime into knap::Error. For sources that are compiled with CUDA.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#include "base/error.h"

namespace knap {

inline void check_cuda(cudaError_t status, const char* what) {
    if (status != cudaSuccess) {
        fail("GPU: ", what, " failed: ", cudaGetErrorString(status));
    }
}

// For allocations.
inline void check_memory(cudaError_t status, std::size_t n_bytes, const char* what) {
    if (status == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        fail("GPU: expected ", n_bytes >> 20, " MiB of memory for ", what, ", found less");
    }
    check_cuda(status, "an allocation");
}

}  // namespace knap
