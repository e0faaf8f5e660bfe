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

// 2^x; 0 below the smallest normal number.
__device__ __forceinline__ float power_of_two(float x) {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

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
        own = is_empty ? 1.0f : before == -INFINITY ? 0.0f : power_of_two(before - most);
        other = is_empty ? 0.0f : power_of_two(next - most);
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

// Where positions are in the cache: rows of one KV head, counted through all pages and heads.
struct PositionMap {
    const int* pages;
    const CudaRun* runs;
    int n_runs;
    int n_kv_heads;
    int kv_head;

    // Of a row of the sequence.
    __device__ std::size_t row_offset(int row) const {
        const int head = __ldg(pages + row / kCudaPageRows) * n_kv_heads + kv_head;
        return static_cast<std::size_t>(head) * kCudaPageRows +
               static_cast<std::size_t>(row % kCudaPageRows);
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
    return {pages + block.first_page, runs + block.first_run, block.n_runs, shape.n_kv_heads,
            kv_head};
}

// The channels of heads in shared memory. Rows of tiles have room for a power of two of them.
// Values of more than 128 channels are taken in parts, each with all keys.
template <int HeadDim>
struct HeadTile {
    static_assert(HeadDim % 32 == 0, "inputs of products are written 32 at a time");
    static constexpr int kKeys = HeadDim <= 64 ? 64 : HeadDim <= 128 ? 128 : 256;
    static constexpr int kValues = kKeys < 128 ? kKeys : 128;
    static constexpr int kParts = kKeys / kValues;
    static constexpr int kOwnValues = HeadDim / kParts;  // channels of a part
    static constexpr int kPairs = kKeys <= 128 ? 2 : 4;  // of channels, that a lane has
};

// The place of eight numbers, a piece, in a tile of so many rows (positions or columns) in shared
// memory: blocks of 64 channels, in which the pieces of a row change places with the row, so that
// eight rows of a piece are read at once. Tiles begin at multiples of 1024 bytes where groups of
// warps multiply (mma_group.cuh).
__device__ __forceinline__ constexpr int tile_place(int n_rows, int row, int piece) {
    return (piece / 8 * n_rows + row) * 64 + (piece % 8 ^ row % 8) * 8;
}

// Floats from one column to the next, of sums in shared memory.
template <int HeadDim>
inline constexpr int kSumStride = HeadTile<HeadDim>::kOwnValues + 8;

// Eight numbers of an int8 cache, as halves.
__device__ __forceinline__ uint4 widen_codes(const uint2& codes, __half scale) {
    const __half2 by = __half2half2(scale);
    const __half2 offset = __float2half2_rn(1024.0f + 128.0f);
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        // A byte below 0x64 is 1024 plus the byte.
        const std::uint32_t flipped = (i < 2 ? codes.x : codes.y) ^ 0x80808080;
        const std::uint32_t bits = __byte_perm(flipped, 0x64646464, i % 2 == 0 ? 0x4140 : 0x4342);
        const __half2 both =
            __hmul2_rn(__hsub2_rn(*reinterpret_cast<const __half2*>(&bits), offset), by);
        words[i] = *reinterpret_cast<const std::uint32_t*>(&both);
    }
    return {words[0], words[1], words[2], words[3]};
}

// A warp's state for up to 16 * Groups columns. Queries, keys and values are in shared memory.
template <int HeadDim, int Groups>
struct WarpAttention {
    static constexpr int kTiles = HeadTile<HeadDim>::kOwnValues / 8;

    // A lane has columns g and g + 8 of a group, channels 8 t + 2 q and the next of tile t.
    float out[Groups][kTiles][4];
    float most[Groups][2];
    float weight[Groups][2];

    __device__ void clear() {
        for (auto& group : out) {
            for (auto& tile : group) {
                for (float& x : tile) {
                    x = 0;
                }
            }
        }
        clear_scalars();
    }

    __device__ void clear_scalars() {
        for (int group = 0; group < Groups; ++group) {
            for (int i = 0; i < 2; ++i) {
                most[group][i] = -INFINITY;
                weight[group][i] = 0;
            }
        }
    }

    // Scores of N times 16 positions: [position / 8 % 2][row g: two positions, row g + 8: two].
    // Queries and keys are tiles of so many rows; the warp's begin at `queries`.
    template <int N, int QueryRows, int KeyRows>
    __device__ static void score(const std::uint16_t* queries,
                                 const std::uint16_t* keys,
                                 int lane,
                                 float (&scores)[Groups][N][2][4]) {
#pragma unroll
        for (int i = 0; i < Groups * N * 8; ++i) {
            scores[i / 8 / N][i / 8 % N][i / 4 % 2][i % 4] = 0;
        }
        int query = tile_place(QueryRows, lane % 16, lane / 16);
        int key = tile_place(KeyRows, lane / 16 * 8 + lane % 8, lane / 8 % 2);
        forget(query);
        forget(key);
#pragma unroll
        for (int step = 0; step < HeadDim / 16; ++step) {
            const int flip = step % 4 * 16;  // two pieces
            std::uint32_t b[N][4];
#pragma unroll
            for (int i = 0; i < N; ++i) {
                load_matrices(b[i], keys + (key ^ flip) + (step / 4 * KeyRows + 16 * i) * 64);
            }
#pragma unroll
            for (int group = 0; group < Groups; ++group) {
                std::uint32_t a[4];
                load_matrices(a,
                              queries + (query ^ flip) + (step / 4 * QueryRows + 16 * group) * 64);
#pragma unroll
                for (int i = 0; i < 2 * N; ++i) {
                    mma_f16(scores[group][i / 2][i % 2], a[0], a[1], a[2], a[3],
                            b[i / 2][i % 2 * 2], b[i / 2][i % 2 * 2 + 1]);
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

    // Positions that a row does not see have no weight. Scores are those from position `first` on.
    __device__ static void hide_unseen(float (&scores)[2][4],
                                       int first,
                                       const int (&n_seen)[2],
                                       int lane) {
        const int position = first + 2 * (lane % 4);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            float& x = scores[i / 4][i % 4];
            x = position + 8 * (i / 4) + i % 2 < n_seen[i % 4 / 2] ? x : -INFINITY;
        }
    }

    // The largest score of each row.
    __device__ static void find_tops(const float (&scores)[2][4], float (&tops)[2]) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            tops[row] = fmaxf(fmaxf(scores[0][2 * row], scores[0][2 * row + 1]),
                              fmaxf(scores[1][2 * row], scores[1][2 * row + 1]));
        }
#pragma unroll
        for (int step = 1; step <= 2; ++step) {
#pragma unroll
            for (float& top : tops) {
                top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
            }
        }
    }

    // What sums are multiplied by when a larger score comes.
    struct Shrink {
        float by[2];
        bool is_needed;  // by some lane of the warp
    };

    // Turns scores into weights.
    __device__ Shrink weigh(float (&scores)[2][4], const float (&tops)[2], int group) {
        Shrink shrink;
        bool is_needed = false;
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const float before = most[group][row];
            const float now = fmaxf(before, tops[row]);
            const float base = now == -INFINITY ? 0.0f : now;
            shrink.by[row] = power_of_two(before - base);  // 0 at first
            most[group][row] = now;
            float added = 0;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float& x = scores[i / 2][2 * row + i % 2];
                x = power_of_two(x - base);
                added = __fadd_rn(added, x);
            }
            weight[group][row] = __fmaf_rn(weight[group][row], shrink.by[row], added);
            // There is nothing to shrink before the first position.
            is_needed = is_needed || (shrink.by[row] != 1.0f && before != -INFINITY);
        }
        shrink.is_needed = __any_sync(~0u, is_needed);
        return shrink;
    }

    __device__ void shrink_sums(const Shrink& shrink, int group) {
        if (shrink.is_needed) {
#pragma unroll
            for (auto& tile : out[group]) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    tile[i] = __fmul_rn(tile[i], shrink.by[i / 2]);
                }
            }
        }
    }

    __device__ static std::uint32_t pack(float x, float y) {
        const __half2 both = __floats2half2_rn(x, y);
        return *reinterpret_cast<const std::uint32_t*>(&both);
    }

    // As the factors of values.
    __device__ static void pack_weights(const float (&weights)[2][4], std::uint32_t (&a)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float(&from)[4] = weights[i / 2];
            a[i] = pack(from[i % 2 * 2], from[i % 2 * 2 + 1]);
        }
    }

    // Adds the values of 16 positions, from row `first` of a tile on.
    template <int N, int Rows>
    __device__ void add_values(const std::uint16_t* values,
                               int first,
                               const float (&weights)[Groups][N][2][4],
                               int step,
                               int lane) {
        std::uint32_t a[Groups][4];
#pragma unroll
        for (int group = 0; group < Groups; ++group) {
            pack_weights(weights[group][step], a[group]);
        }
        int place = tile_place(Rows, first + lane % 16, lane / 16);
        forget(place);
#pragma unroll
        for (int tile = 0; tile < kTiles; tile += 2) {
            std::uint32_t b[4];
            // Of piece `tile` + lane / 16.
            load_transposed(b, values + (place ^ tile % 8 * 8) + tile / 8 * Rows * 64);
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
        float* at = to + lane / 4 * kSumStride<HeadDim> + lane % 4 * 2;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
            const float(&from)[4] = out[Half / 2][tile];
            *reinterpret_cast<float2*>(at + 8 * tile) =
                make_float2(from[Half % 2 * 2], from[Half % 2 * 2 + 1]);
        }
    }
};

}  // namespace knap
