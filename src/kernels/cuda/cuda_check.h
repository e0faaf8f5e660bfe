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

// Has a kernel run with so much shared memory, or with less.
template <auto Kernel>
void allow_shared_memory(std::size_t n_bytes) {
    static std::size_t allowed = 0;
    if (n_bytes > allowed) {
        check_cuda(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(n_bytes)),
                   "preparing a kernel");
        check_cuda(cudaFuncSetAttribute(Kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared),
                   "preparing a kernel");
        allowed = n_bytes;
    }
}

}  // namespace knap
