// Heads between their product and the cache: norm, rotation, rounding.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

#include "kernels/cuda/pass.h"
#include "kernels/cuda/step_inputs.cuh"

namespace knap {

// The row of a KV head in the cache, counted through all pages and heads.
__device__ __forceinline__ std::size_t cache_row(const CudaShape& shape, int kv_head, int stored) {
    const int page = stored / kCudaPageRows;
    return (static_cast<std::size_t>(page) * static_cast<std::size_t>(shape.n_kv_heads) +
            static_cast<std::size_t>(kv_head)) *
               kCudaPageRows +
           static_cast<std::size_t>(stored % kCudaPageRows);
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

// A lane's pairs of channels of a head, of up to 64 * Pairs channels. Loading takes long: load
// several heads before turning one.
template <int Pairs>
struct HeadPairs {
    float x[Pairs];
    float y[Pairs];

    __device__ void load(const CudaShape& shape, const float* head, int lane) {
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            const int pair = lane + 32 * i;
            const ChannelPair at(shape, pair);
            x[i] = 2 * pair < shape.head_dim ? __ldcg(head + at.first) : 0.0f;
            y[i] = 2 * pair < shape.head_dim ? __ldcg(head + at.second) : 0.0f;
        }
    }

    // A warp normalises and rotates a head. `turns` has the cosine and sine of each pair in the
    // places of the pair.
    __device__ __forceinline__ void turn(const CudaShape& shape,
                                         const float* norm,
                                         const float* turns,
                                         int lane) {
        if (norm != nullptr) {
            normalise(shape, norm, lane);
        }
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            const int pair = lane + 32 * i;
            if (2 * pair < shape.n_rot) {
                const ChannelPair at(shape, pair);
                const float cosine = turns[at.first];
                const float sine = turns[at.second];
                const float turned = __fmaf_rn(x[i], cosine, -__fmul_rn(y[i], sine));
                y[i] = __fmaf_rn(x[i], sine, __fmul_rn(y[i], cosine));
                x[i] = turned;
            }
        }
    }

    __device__ __forceinline__ void normalise(const CudaShape& shape, const float* norm, int lane) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            squares = __fmaf_rn(x[i], x[i], squares);
            squares = __fmaf_rn(y[i], y[i], squares);
        }
        const float factor =
            rsqrtf(warp_sum(squares) / static_cast<float>(shape.head_dim) + shape.rms_eps);
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            const int pair = lane + 32 * i;
            if (2 * pair < shape.head_dim) {
                const ChannelPair at(shape, pair);
                x[i] = __fmul_rn(__fmul_rn(x[i], factor), __ldg(norm + at.first));
                y[i] = __fmul_rn(__fmul_rn(y[i], factor), __ldg(norm + at.second));
            }
        }
    }

    // Calls take(channel, number) for every channel of the lane.
    template <typename Take>
    __device__ __forceinline__ void give(const CudaShape& shape, int lane, Take take) const {
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            const int pair = lane + 32 * i;
            if (2 * pair < shape.head_dim) {
                const ChannelPair at(shape, pair);
                take(at.first, x[i]);
                take(at.second, y[i]);
            }
        }
    }

    // A channel that some lane has; every lane may ask for another.
    __device__ float channel(const CudaShape& shape, int channel) const {
        const bool is_half = shape.rotates_halves && channel < shape.n_rot;
        const int half = shape.n_rot / 2;
        const int pair = !is_half ? channel / 2 : channel < half ? channel : channel - half;
        const bool is_first = is_half ? channel < half : channel % 2 == 0;
        float result = 0;
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            const float first = __shfl_sync(~0u, x[i], pair % 32);
            const float second = __shfl_sync(~0u, y[i], pair % 32);
            if (pair / 32 == i) {
                result = is_first ? first : second;
            }
        }
        return result;
    }
};

// A warp stores 32 channels of a row as int8 with a scale, like ggml's q8_0.
__device__ __forceinline__ void store_block(float x,
                                            std::uint8_t* codes,
                                            std::uint16_t* scale,
                                            int lane) {
    const float most =
        __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(fabsf(x))));  // none is negative
    const float by = most / 127.0f;
    const float inverse = by > 0 ? 1.0f / by : 0.0f;
    codes[lane] = static_cast<std::uint8_t>(__float2int_rn(x * inverse));
    if (lane == 0) {
        *scale = __half_as_ushort(__float2half_rn(by));
    }
}

// A warp stores the key and the value of one row and KV head. `row` is [n_q + 2 n_kv].
template <int Pairs, bool IsInt8>
__device__ inline void store_row(const CudaShape& shape,
                                 const CudaLayer& layer,
                                 const float* row,
                                 const float* turns,
                                 int kv_head,
                                 int stored,
                                 int lane) {
    const std::size_t at = cache_row(shape, kv_head, stored);
    const std::size_t first = at * static_cast<std::size_t>(shape.head_dim);
    const auto n_scales = static_cast<std::size_t>(scale_places(shape.head_dim));
    const float* value = row + shape.n_q() + shape.n_kv() + kv_head * shape.head_dim;
    constexpr int kBlocks = 2 * Pairs;  // of 32 channels
    float loaded[kBlocks];
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
        loaded[i] = lane + 32 * i < shape.head_dim ? __ldcg(value + lane + 32 * i) : 0.0f;
    }
    HeadPairs<Pairs> key;
    key.load(shape, row + shape.n_q() + kv_head * shape.head_dim, lane);
    key.turn(shape, layer.k_norm, turns, lane);
    if (IsInt8 && shape.has_int8_keys) {
#pragma unroll
        for (int i = 0; i < kBlocks; ++i) {
            if (32 * i < shape.head_dim) {
                store_block(key.channel(shape, lane + 32 * i), layer.keys + first + 32 * i,
                            layer.key_scales + at * n_scales + i, lane);
            }
        }
    } else {
        __half* keys = reinterpret_cast<__half*>(layer.keys) + first;
        key.give(shape, lane, [&](int channel, float x) { keys[channel] = __float2half_rn(x); });
    }
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
        if (IsInt8 && shape.has_int8_values) {
            if (32 * i < shape.head_dim) {
                store_block(loaded[i], layer.values + first + 32 * i,
                            layer.value_scales + at * n_scales + i, lane);
            }
        } else if (lane + 32 * i < shape.head_dim) {
            reinterpret_cast<__half*>(
                layer.values)[first + static_cast<std::size_t>(lane + 32 * i)] =
                __float2half_rn(loaded[i]);
        }
    }
}

// The same for any shape.
__device__ inline void store_any_row(const CudaShape& shape,
                                     const CudaLayer& layer,
                                     const float* row,
                                     const float* turns,
                                     int kv_head,
                                     int stored,
                                     int lane) {
    if (shape.head_dim > 128) {
        store_row<4, true>(shape, layer, row, turns, kv_head, stored, lane);
    } else {
        store_row<2, true>(shape, layer, row, turns, kv_head, stored, lane);
    }
}

}  // namespace knap
