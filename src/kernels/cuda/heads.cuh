// Heads between their product and the cache: norm, rotation, rounding.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

#include "kernels/cuda/pass.h"
#include "kernels/cuda/step_inputs.cuh"

namespace knap {

// The address of a row of a KV head in the cache.
__device__ __forceinline__ std::size_t cache_offset(const CudaShape& shape,
                                                    int kv_head,
                                                    int stored) {
    const int page = stored / kCudaPageRows;
    return ((static_cast<std::size_t>(page) * static_cast<std::size_t>(shape.n_kv_heads) +
             static_cast<std::size_t>(kv_head)) *
                kCudaPageRows +
            static_cast<std::size_t>(stored % kCudaPageRows)) *
           static_cast<std::size_t>(shape.head_dim);
}

// The two channels of pair `pair` of a head.
struct ChannelPair {
    int first;
    int second;

    __device__ ChannelPair(const CudaShape& shape, int pair) {
        if (shape.rotates_halves && 2 * pair < shape.n_rot) {
            first = pair;
            second = pair + shape.n_rot / 2;
        } else {
            first = 2 * pair;
            second = first + 1;
        }
    }
};

inline constexpr int kMaxHeadDim = 128;

inline constexpr int kLanePairs = kMaxHeadDim / 64;

// A lane's pairs of channels of a head. Loading takes long: load several heads before turning one.
struct HeadPairs {
    float x[kLanePairs];
    float y[kLanePairs];

    __device__ void load(const CudaShape& shape, const float* head, int lane) {
#pragma unroll
        for (int i = 0; i < kLanePairs; ++i) {
            const int pair = lane + 32 * i;
            const ChannelPair at(shape, pair);
            x[i] = 2 * pair < shape.head_dim ? __ldcg(head + at.first) : 0.0f;
            y[i] = 2 * pair < shape.head_dim ? __ldcg(head + at.second) : 0.0f;
        }
    }
};

// A warp normalises and rotates a head and calls give(channel, number) for every channel. `turns`
// has the cosine and sine of each pair in the places of the pair.
template <typename Give>
__device__ __forceinline__ void turn_head(const CudaShape& shape,
                                          const HeadPairs& head,
                                          const float* norm,
                                          const float* turns,
                                          int lane,
                                          Give give) {
    constexpr int kPairs = kLanePairs;
    const int n_pairs = shape.head_dim / 2;
    float x[kPairs];
    float y[kPairs];
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
        x[i] = head.x[i];
        y[i] = head.y[i];
    }
    if (norm != nullptr) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            squares = __fmaf_rn(x[i], x[i], squares);
            squares = __fmaf_rn(y[i], y[i], squares);
        }
        const float factor =
            rsqrtf(warp_sum(squares) / static_cast<float>(shape.head_dim) + shape.rms_eps);
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            const int pair = lane + 32 * i;
            const ChannelPair at(shape, pair);
            if (pair < n_pairs) {
                x[i] = __fmul_rn(__fmul_rn(x[i], factor), __ldg(norm + at.first));
                y[i] = __fmul_rn(__fmul_rn(y[i], factor), __ldg(norm + at.second));
            }
        }
    }
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
        const int pair = lane + 32 * i;
        if (pair >= n_pairs) {
            continue;
        }
        const ChannelPair at(shape, pair);
        if (2 * pair < shape.n_rot) {
            const float cosine = turns[at.first];
            const float sine = turns[at.second];
            const float turned = __fmaf_rn(x[i], cosine, -__fmul_rn(y[i], sine));
            y[i] = __fmaf_rn(x[i], sine, __fmul_rn(y[i], cosine));
            x[i] = turned;
        }
        give(at.first, x[i]);
        give(at.second, y[i]);
    }
}

// A warp stores the key and the value of one row and KV head. `row` is [n_q + 2 n_kv].
__device__ inline void store_row(const CudaShape& shape,
                                 const CudaLayer& layer,
                                 const float* row,
                                 const float* turns,
                                 int kv_head,
                                 int stored,
                                 int lane) {
    const std::size_t at = cache_offset(shape, kv_head, stored);
    __half* keys = reinterpret_cast<__half*>(layer.keys) + at;
    __half* values = reinterpret_cast<__half*>(layer.values) + at;
    const float* value = row + shape.n_q() + shape.n_kv() + kv_head * shape.head_dim;
    constexpr int kValues = kMaxHeadDim / 32;  // of a lane
    float loaded[kValues];
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        loaded[i] = lane + 32 * i < shape.head_dim ? __ldcg(value + lane + 32 * i) : 0.0f;
    }
    HeadPairs key;
    key.load(shape, row + shape.n_q() + kv_head * shape.head_dim, lane);
    turn_head(shape, key, layer.k_norm, turns, lane,
              [&](int channel, float x) { keys[channel] = __float2half_rn(x); });
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        if (lane + 32 * i < shape.head_dim) {
            values[lane + 32 * i] = __float2half_rn(loaded[i]);
        }
    }
}

}  // namespace knap
