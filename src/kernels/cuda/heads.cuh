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

// What becomes of a head.
struct HeadWork {
    const float* norm;   // weights of its channels; null: no norm
    const float* turns;  // the cosine and sine of each pair, in the places of the pair
    bool rotates;
    float row_factor;  // of the norm, where it is one of the whole row
};

// Multiplies the channels by the factor of the norm and its weights.
__device__ __forceinline__ void norm_head(const CudaShape& shape,
                                          const HeadWork& work,
                                          int lane,
                                          float (&x)[kLanePairs],
                                          float (&y)[kLanePairs]) {
    float factor = work.row_factor;
    if (!shape.norms_rows) {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < kLanePairs; ++i) {
            squares = __fmaf_rn(x[i], x[i], squares);
            squares = __fmaf_rn(y[i], y[i], squares);
        }
        factor = rsqrtf(warp_sum(squares) / static_cast<float>(shape.head_dim) + shape.rms_eps);
    }
#pragma unroll
    for (int i = 0; i < kLanePairs; ++i) {
        const int pair = lane + 32 * i;
        const ChannelPair at(shape, pair);
        if (2 * pair < shape.head_dim) {
            x[i] = __fmul_rn(__fmul_rn(x[i], factor), __ldg(work.norm + at.first));
            y[i] = __fmul_rn(__fmul_rn(y[i], factor), __ldg(work.norm + at.second));
        }
    }
}

// A warp normalises and rotates a head and calls give(channel, number) for every channel.
template <typename Give>
__device__ __forceinline__ void turn_head(
    const CudaShape& shape, const HeadPairs& head, const HeadWork& work, int lane, Give give) {
    float x[kLanePairs];
    float y[kLanePairs];
#pragma unroll
    for (int i = 0; i < kLanePairs; ++i) {
        x[i] = head.x[i];
        y[i] = head.y[i];
    }
    if (work.norm != nullptr && !shape.norms_rotated) {
        norm_head(shape, work, lane, x, y);
    }
#pragma unroll
    for (int i = 0; i < kLanePairs; ++i) {
        const int pair = lane + 32 * i;
        const ChannelPair at(shape, pair);
        if (work.rotates && 2 * pair < shape.n_rot) {
            const float cosine = work.turns[at.first];
            const float sine = work.turns[at.second];
            const float turned = __fmaf_rn(x[i], cosine, -__fmul_rn(y[i], sine));
            y[i] = __fmaf_rn(x[i], sine, __fmul_rn(y[i], cosine));
            x[i] = turned;
        }
    }
    if (work.norm != nullptr && shape.norms_rotated) {
        norm_head(shape, work, lane, x, y);
    }
#pragma unroll
    for (int i = 0; i < kLanePairs; ++i) {
        const int pair = lane + 32 * i;
        if (2 * pair < shape.head_dim) {
            const ChannelPair at(shape, pair);
            give(at.first, x[i]);
            give(at.second, y[i]);
        }
    }
}

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

// A warp stores the key and the value of one row and KV head. `row` is [n_q + 2 n_kv], `work` that
// on the key.
__device__ inline void store_row(const CudaShape& shape,
                                 const CudaLayer& layer,
                                 const float* row,
                                 const HeadWork& work,
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
    turn_head(shape, key, work, lane,
              [&](int channel, float x) { keys[channel] = __float2half_rn(x); });
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
        if (lane + 32 * i < shape.head_dim) {
            values[lane + 32 * i] = __float2half_rn(loaded[i]);
        }
    }
}

}  // namespace knap
