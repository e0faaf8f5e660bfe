#include <cfloat>

#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/results/best_tokens.h"

namespace knap {
namespace {

// Larger for larger logits; 0 only where there is none.
__device__ __forceinline__ std::uint32_t order_of(float logit) {
    return ~static_cast<std::uint32_t>(rank_key(logit, 0) >> 32);
}

// The largest number that `n_best` threads reach with their largest one; 0 if there is none. As
// many tokens of the part are at least that large, so the best are among those that are.
__device__ __forceinline__ std::uint32_t find_threshold(std::uint32_t own, int n_best) {
    std::uint32_t threshold = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
        const std::uint32_t higher = threshold | 1u << bit;
        if (__syncthreads_count(own >= higher ? 1 : 0) >= n_best) {
            threshold = higher;
        }
    }
    return threshold;
}

// A block has a part of a row.
__global__ void __launch_bounds__(kBestThreads)
    best_kernel(const float* logits, int n_vocab, int n_best, std::uint64_t* lists) {
    __shared__ int n_listed;
    const auto thread = static_cast<int>(threadIdx.x);
    const int first = static_cast<int>(blockIdx.x) * kBestPart + thread;
    const float* row =
        logits + static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(n_vocab);
    if (thread == 0) {
        n_listed = 0;
    }
    float own[kBestPerThread];
    std::uint32_t most = 0;
    bool is_sound = true;
#pragma unroll
    for (int i = 0; i < kBestPerThread; ++i) {
        const int token = first + i * kBestThreads;
        own[i] = token < n_vocab ? __ldcg(row + token) : -INFINITY;
        is_sound = is_sound && own[i] <= FLT_MAX;
        most = own[i] >= -FLT_MAX ? max(most, order_of(own[i])) : most;
    }
    const bool is_usable = __syncthreads_and(is_sound ? 1 : 0) != 0;
    const std::uint32_t threshold = find_threshold(most, n_best);
    const int room = best_room(n_best);
    std::uint64_t* list = lists + (static_cast<std::size_t>(blockIdx.y) * gridDim.x + blockIdx.x) *
                                      static_cast<std::size_t>(1 + room);
#pragma unroll
    for (int i = 0; i < kBestPerThread; ++i) {
        if (own[i] >= -FLT_MAX && order_of(own[i]) >= threshold) {
            const int at = atomicAdd(&n_listed, 1);
            if (at < room) {
                list[1 + at] = rank_key(own[i], first + i * kBestThreads);
            }
        }
    }
    __syncthreads();
    if (thread == 0) {
        list[0] = is_usable ? static_cast<std::uint64_t>(n_listed) : kNoBest;
    }
}

}  // namespace

void list_best_tokens(const float* logits,
                      int n_rows,
                      int n_vocab,
                      int n_best,
                      std::uint64_t* lists,
                      const CudaStream& stream) {
    const dim3 grid(static_cast<unsigned>(best_lists(n_vocab)), static_cast<unsigned>(n_rows));
    best_kernel<<<grid, kBestThreads, 0, static_cast<cudaStream_t>(stream.handle())>>>(
        logits, n_vocab, n_best, lists);
    check_cuda(cudaGetLastError(), "listing the best tokens");
}

}  // namespace knap
