// Attention of a few columns (query heads of rows that share a KV head) over one part of the
// context, by eight warps. Each takes an eighth of the part's positions, 16 at a time, with tensor
// cores from shared memory. The warps' results are merged in order, and so are those of parts.
// So the result of a column depends on its own query and on what it sees, and on nothing else.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

#include "kernels/cuda/heads.cuh"
#include "kernels/cuda/scalars.cuh"

namespace knap {

inline constexpr int kAttentionStep16 = 16;  // positions that a warp takes at once

// Weighted sums of values, relative to the largest score. States are merged in order: with
// m = max(a.most, b.most), a sum becomes a.sum * 2^(a.most - m) + b.sum * 2^(b.most - m). A state
// that has seen nothing changes nothing.
struct MergeFactors {
    float most;
    float own;
    float other;

    MergeFactors() = default;
    __device__ MergeFactors(float before, float next) {
        const bool is_empty = next == -INFINITY;
        most = fmaxf(before, next);
        own = is_empty ? 1.0f : before == -INFINITY ? 0.0f : exp2f(before - most);
        other = is_empty ? 0.0f : exp2f(next - most);
    }
    __device__ float merge(float before, float next) const {
        return __fmaf_rn(before, own, __fmul_rn(next, other));
    }
};

struct SoftmaxState {
    float most = -INFINITY;  // of the scores, in powers of two
    float weight = 0;        // sum of the positions' weights
    float sum = 0;           // of one channel
};

// Where positions are in the cache.
struct PositionMap {
    const int* pages;
    const CudaRun* runs;
    int n_runs;
    int n_kv_heads;
    int kv_head;
    int head_dim;

    // Of a row of the sequence.
    __device__ std::size_t row_offset(int row) const {
        const int head = __ldg(pages + row / kCudaPageRows) * n_kv_heads + kv_head;
        return static_cast<std::size_t>(head) * static_cast<std::size_t>(kCudaPageRows * head_dim) +
               static_cast<std::size_t>(row % kCudaPageRows * head_dim);
    }
    __device__ int run_of(int position) const {
        int run = 0;
        while (run + 1 < n_runs && position >= runs[run + 1].position) {
            ++run;
        }
        return run;
    }
    __device__ std::size_t at(int position) const {
        const CudaRun& run = runs[run_of(position)];
        return row_offset(run.row + position - run.position);
    }
};

__device__ inline PositionMap position_map(const CudaShape& shape,
                                           const int* pages,
                                           const CudaRun* runs,
                                           const CudaBlock& block,
                                           int kv_head) {
    return {pages + block.first_page,
            runs + block.first_run,
            block.n_runs,
            shape.n_kv_heads,
            kv_head,
            shape.head_dim};
}

// The places of numbers in shared memory, in pieces of eight, so that lanes that read fragments
// meet no bank twice. A row is a position or a column. Rows begin at multiples of their size.
template <int HeadDim>
struct Places {
    static constexpr int kPieces = HeadDim / 8;
    // Keys and queries: lanes read four pieces of two neighbouring rows.
    __device__ static int key(int row, int piece) {
        return row * HeadDim + (piece ^ (row & 1) << 2) * 8;
    }
    // Values: lanes read one piece of eight rows.
    __device__ static int value(int row, int piece) {
        return row * HeadDim + (piece ^ (row & 7)) * 8;
    }
    static constexpr int kSumStride = HeadDim + 8;  // floats of a column
};

// A warp's state for up to 16 * Groups columns. Queries, keys and values are in shared memory.
template <int HeadDim, int Groups>
struct WarpAttention {
    using At = Places<HeadDim>;

    // A lane has columns g and g + 8 of a group, channels 8 t + 2 q and the next of tile t.
    float out[Groups][HeadDim / 8][4];
    float most[Groups][2];
    float weight[Groups][2];

    __device__ void clear() {
        for (int group = 0; group < Groups; ++group) {
            for (auto& tile : out[group]) {
                for (float& x : tile) {
                    x = 0;
                }
            }
            for (int i = 0; i < 2; ++i) {
                most[group][i] = -INFINITY;
                weight[group][i] = 0;
            }
        }
    }

    // Scores of N times 16 positions: [position / 8 % 2][row g: two positions, row g + 8: two].
    template <int N>
    __device__ static void score(const std::uint16_t* queries,
                                 const std::uint16_t* keys,
                                 int lane,
                                 float (&scores)[Groups][N][2][4]) {
        const int g = lane / 4;
        const int q = lane % 4;
#pragma unroll
        for (int i = 0; i < Groups * N * 8; ++i) {
            scores[i / 8 / N][i / 8 % N][i / 4 % 2][i % 4] = 0;
        }
        // Chunks of 32 channels come in pairs, which odd rows have the other way round.
        int places[2] = {At::key(g, q), At::key(g, 4 + q)};
        forget(places[0]);
        forget(places[1]);
#pragma unroll
        for (int chunk = 0; chunk < HeadDim / 32; ++chunk) {
            const int place = places[chunk % 2] + chunk / 2 * 64;
            uint4 key[2 * N];
#pragma unroll
            for (int tile = 0; tile < 2 * N; ++tile) {
                key[tile] = load_shared16(keys + place + 8 * tile * HeadDim);
            }
#pragma unroll
            for (int group = 0; group < Groups; ++group) {
                const uint4 a = load_shared16(queries + place + 16 * group * HeadDim);
                const uint4 b = load_shared16(queries + place + (16 * group + 8) * HeadDim);
#pragma unroll
                for (int tile = 0; tile < 2 * N; ++tile) {
                    float(&of)[4] = scores[group][tile / 2][tile % 2];
                    mma_f16(of, a.x, b.x, a.y, b.y, key[tile].x, key[tile].y);
                    mma_f16(of, a.z, b.z, a.w, b.w, key[tile].z, key[tile].w);
                }
            }
        }
    }

    // c tanh(s / c) in place of scores s, which are in powers of two.
    template <int N>
    __device__ __forceinline__ static void cap_scores(float (&scores)[Groups][N][2][4], float cap) {
        constexpr float kLog2e = 1.44269504088896f;
        const float scaled_cap = __fmul_rn(cap, kLog2e);
#pragma unroll
        for (int i = 0; i < Groups * N * 8; ++i) {
            float& x = scores[i / 8 / N][i / 8 % N][i / 4 % 2][i % 4];
            x = capped(x, scaled_cap);
        }
    }

    // Hides positions before the first that a row sees. The scores are those from `first` on.
    __device__ __forceinline__ static void hide_before(float (&scores)[2][4],
                                                       int first,
                                                       const int (&first_seen)[2],
                                                       int lane) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int position = first + 8 * (i / 4) + 2 * (lane % 4) + i % 2;
            float& x = scores[i / 4][i % 4];
            x = position < first_seen[i % 4 / 2] ? -INFINITY : x;
        }
    }

    // Turns scores into weights; positions that a row does not see have none.
    __device__ void weigh(
        float (&scores)[2][4], int group, int first, const int (&n_seen)[2], int lane) {
        const int q = lane % 4;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            float top = -INFINITY;
#pragma unroll
            for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float& x = scores[tile][2 * row + i];
                    x = first + 8 * tile + 2 * q + i < n_seen[row] ? x : -INFINITY;
                    top = fmaxf(top, x);
                }
            }
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            const float before = most[group][row];
            const float now = fmaxf(before, top);
            const float base = now == -INFINITY ? 0.0f : now;
            const float shrink = exp2f(before - base);  // 0 at first
            most[group][row] = now;
            float added = 0;
#pragma unroll
            for (int tile = 0; tile < 2; ++tile) {
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    float& x = scores[tile][2 * row + i];
                    x = exp2f(x - base);
                    added = __fadd_rn(added, x);
                }
            }
            weight[group][row] = __fmaf_rn(weight[group][row], shrink, added);
            // There is nothing to shrink before the first position.
            if (__any_sync(~0u, shrink != 1.0f && before != -INFINITY)) {
#pragma unroll
                for (auto& tile : out[group]) {
                    tile[2 * row] = __fmul_rn(tile[2 * row], shrink);
                    tile[2 * row + 1] = __fmul_rn(tile[2 * row + 1], shrink);
                }
            }
        }
    }

    __device__ static std::uint32_t pack(float x, float y) {
        const __half2 both = __floats2half2_rn(x, y);
        return *reinterpret_cast<const std::uint32_t*>(&both);
    }

    // Adds the values of 16 positions, from row `first` of `values` on.
    template <int N>
    __device__ void add_values(const std::uint16_t* values,
                               int first,
                               const float (&weights)[Groups][N][2][4],
                               int step,
                               int lane) {
        std::uint32_t a[Groups][4];
#pragma unroll
        for (int group = 0; group < Groups; ++group) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float(&from)[4] = weights[group][step][i / 2];
                a[group][i] = pack(from[i % 2 * 2], from[i % 2 * 2 + 1]);
            }
        }
        int place = At::value(first + lane % 16, lane / 16);
        forget(place);
#pragma unroll
        for (int tile = 0; tile < HeadDim / 8; tile += 2) {
            std::uint32_t b[4];
            // Of piece `tile` + lane / 16.
            load_transposed(b, values + (place ^ tile % 8 * 8) + tile / 8 * 64);
#pragma unroll
            for (int group = 0; group < Groups; ++group) {
                const std::uint32_t(&of)[4] = a[group];
                mma_f16(out[group][tile], of[0], of[1], of[2], of[3], b[0], b[1]);
                mma_f16(out[group][tile + 1], of[0], of[1], of[2], of[3], b[2], b[3]);
            }
        }
    }

    // After the last position: lanes have added up their own ones' weights.
    __device__ void add_lanes() {
#pragma unroll
        for (int group = 0; group < Groups; ++group) {
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                float& w = weight[group][row];
                w = __fadd_rn(w, __shfl_xor_sync(~0u, w, 1));
                w = __fadd_rn(w, __shfl_xor_sync(~0u, w, 2));
            }
        }
    }

    // The largest score and the weight of every column.
    __device__ void write_scalars(float* tops, float* weights, int lane) const {
#pragma unroll
        for (int group = 0; group < Groups; ++group) {
#pragma unroll
            for (int row = 0; row < 2; ++row) {
                if (lane % 4 == 0) {
                    const int column = 16 * group + 8 * row + lane / 4;
                    tops[column] = most[group][row];
                    weights[column] = weight[group][row];
                }
            }
        }
    }

    // Writes the sums of the eight columns from 8 * Half on: [column][kSumStride].
    template <int Half>
    __device__ void write(float* to, int lane) const {
        float* at = to + lane / 4 * At::kSumStride + lane % 4 * 2;
#pragma unroll
        for (int tile = 0; tile < HeadDim / 8; ++tile) {
            const float(&from)[4] = out[Half / 2][tile];
            *reinterpret_cast<float2*>(at + 8 * tile) =
                make_float2(from[Half % 2 * 2], from[Half % 2 * 2 + 1]);
        }
    }
};

}  // namespace knap
