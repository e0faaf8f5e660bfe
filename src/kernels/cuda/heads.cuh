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

// What becomes of a head.
struct HeadWork {
    const float* norm;   // weights of its channels; null: no norm
    const float* turns;  // the cosine and sine of each pair, in the places of the pair
    bool rotates;
    float row_factor;  // of the norm, where it is one of the whole row
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

    // A warp normalises and rotates a head.
    __device__ __forceinline__ void turn(const CudaShape& shape, const HeadWork& work, int lane) {
        if (work.norm != nullptr && !shape.norms_rotated) {
            normalise(shape, work, lane);
        }
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            const int pair = lane + 32 * i;
            if (work.rotates && 2 * pair < shape.n_rot) {
                const ChannelPair at(shape, pair);
                const float cosine = work.turns[at.first];
                const float sine = work.turns[at.second];
                const float turned = __fmaf_rn(x[i], cosine, -__fmul_rn(y[i], sine));
                y[i] = __fmaf_rn(x[i], sine, __fmul_rn(y[i], cosine));
                x[i] = turned;
            }
        }
        if (work.norm != nullptr && shape.norms_rotated) {
            normalise(shape, work, lane);
        }
    }

    __device__ __forceinline__ void normalise(const CudaShape& shape,
                                              const HeadWork& work,
                                              int lane) {
        float factor = work.row_factor;
        if (!shape.norms_rows) {
            float squares = 0;
#pragma unroll
            for (int i = 0; i < Pairs; ++i) {
                squares = __fmaf_rn(x[i], x[i], squares);
                squares = __fmaf_rn(y[i], y[i], squares);
            }
            factor = rsqrtf(warp_sum(squares) / static_cast<float>(shape.head_dim) + shape.rms_eps);
        }
#pragma unroll
        for (int i = 0; i < Pairs; ++i) {
            const int pair = lane + 32 * i;
            if (2 * pair < shape.head_dim) {
                const ChannelPair at(shape, pair);
                x[i] = __fmul_rn(__fmul_rn(x[i], factor), __ldg(work.norm + at.first));
                y[i] = __fmul_rn(__fmul_rn(y[i], factor), __ldg(work.norm + at.second));
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

enum class HeadKind { query, key };

// The work on the queries or keys of a layer: what is the same for all rows. `factors` are null or
// CudaBuffers::head_factors.
struct HeadsWork {
    const float* norm;
    const float* turns;  // [row][n_rot]
    const float* factors;
    int kind;
    bool rotates;

    __device__ __forceinline__ HeadsWork(const CudaShape& shape,
                                         const CudaPassData& pass,
                                         const CudaLayer& layer,
                                         HeadKind which,
                                         const float* tables,
                                         const float* of_rows)
        : norm(which == HeadKind::key ? layer.k_norm : layer.q_norm),
          turns(tables + pass.table_at(layer, shape.n_rot)),
          factors(of_rows),
          kind(which == HeadKind::key ? 1 : 0),
          rotates(layer.rotation >= 0) {}

    // `row` is that of the rotations, `column` that of the heads.
    __device__ __forceinline__ HeadWork of(const CudaShape& shape,
                                           int row,
                                           int column,
                                           int head) const {
        HeadWork work{norm, turns + row * shape.n_rot, rotates, 1.0f};
        if (factors != nullptr && norm != nullptr) {
            work.norm += head * shape.head_dim;
            work.row_factor = __ldcg(factors + 2 * column + kind);
        }
        return work;
    }
};

// The factor of a norm of `n` numbers, by a block of eight warps; all of its threads get it.
// `sums` is shared memory for eight numbers; sync() is a barrier of the block.
template <typename Sync>
__device__ __forceinline__ float row_factor(
    const float* row, int n, float eps, float* sums, int thread, Sync sync) {
    constexpr int kWarps = 8;
    float own = 0;
#pragma unroll 4
    for (int i = thread; i < n; i += 32 * kWarps) {
        const float x = __ldcg(row + i);
        own = __fmaf_rn(x, x, own);
    }
    own = warp_sum(own);
    sync();  // nobody reads the sums of the row before
    if (thread % 32 == 0) {
        sums[thread / 32] = own;
    }
    sync();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
        sum = __fadd_rn(sum, sums[i]);
    }
    return rsqrtf(sum / static_cast<float>(n) + eps);
}

// The factors of row `row`'s queries (`which` 0) or keys (1), as row_factor().
template <typename Sync>
__device__ __forceinline__ void give_head_factor(const CudaShape& shape,
                                                 const CudaBuffers& buffers,
                                                 int row,
                                                 int which,
                                                 float* sums,
                                                 int thread,
                                                 Sync sync) {
    const auto width = static_cast<std::size_t>(shape.n_q() + 2 * shape.n_kv());
    const float* heads = buffers.heads + static_cast<std::size_t>(row) * width;
    const float factor =
        row_factor(which == 0 ? heads : heads + shape.n_q(),
                   which == 0 ? shape.n_q() : shape.n_kv(), shape.rms_eps, sums, thread, sync);
    if (thread == 0) {
        buffers.head_factors[2 * row + which] = factor;
    }
}

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

// A warp stores the key and the value of one row and KV head. `row` is [n_q + 2 n_kv], `work` that
// on the key.
template <int Pairs, bool IsInt8>
__device__ inline void store_row(const CudaShape& shape,
                                 const CudaLayer& layer,
                                 const float* row,
                                 const HeadWork& work,
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
    key.turn(shape, work, lane);
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
                                     const HeadWork& work,
                                     int kv_head,
                                     int stored,
                                     int lane) {
    if (shape.head_dim > 128) {
        store_row<4, true>(shape, layer, row, work, kv_head, stored, lane);
    } else {
        store_row<2, true>(shape, layer, row, work, kv_head, stored, lane);
    }
}

}  // namespace knap
