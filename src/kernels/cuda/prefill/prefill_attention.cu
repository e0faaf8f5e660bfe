// A warp has 16 columns (query heads of rows that share a KV head) and walks over all positions
// that they see, 32 at a time, which the warps of a block bring to shared memory together. Four
// warps are a group, which multiplies together on GPUs of compute capability 9.0.
//
// The step kernel cuts the context into parts, and parts into eight shares, and merges the states
// of shares and then those of parts in order (attention.cuh). Here one warp has them all, one after
// the other: the state of the share in `share`, that of the part in registers beside it, the total
// in shared memory. Positions that a row does not see change nothing: their weights are zero, and
// merging a state that has seen nothing leaves the other as it was.
#include <algorithm>
#include <climits>

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/mma_group.cuh"
#include "kernels/cuda/prefill/prefill_attention.h"

namespace knap {
namespace {

constexpr int kAttentionTile = 32;  // positions that are brought together
// Tiles in shared memory. Codes are made numbers a tile ahead.
template <bool IsInt8>
constexpr int kAttentionStages = IsInt8 ? 4 : 3;
constexpr int kWarpColumns = 16;
constexpr int kGroupWarps = 4;
constexpr int kGroupColumns = kGroupWarps * kWarpColumns;
constexpr int kTileAlignment = 1024;
constexpr int kMaxAttentionWarps = 8;
constexpr int kPartShares = 8;  // the warps of the step kernel

// The size of the part that holds a position: see part_begin().
__host__ __device__ constexpr int part_size(int position) {
    return position < 4096 ? 256 : position < 16384 ? 512 : position < 65536 ? 1024 : 2048;
}

// Parts and shares begin at multiples of their sizes, and tiles never cross them.
constexpr bool has_aligned_parts() {
    for (int part = 0; part < 100; ++part) {
        const int begin = part_begin(part);
        const int size = part_begin(part + 1) - begin;
        if (size != part_size(begin) || begin % size != 0 ||
            size / kPartShares % kAttentionTile != 0) {
            return false;
        }
    }
    return true;
}
static_assert(has_aligned_parts());

KNAP_HOST_DEVICE constexpr int align_tile(int n_bytes) {
    return (n_bytes + kTileAlignment - 1) / kTileAlignment * kTileAlignment;
}

// Tiles of keys or of values as they come from the cache. An int8 cache has codes and scales, which
// become numbers in two further tiles, one for every other stage; else they are numbers.
template <int HeadDim, bool IsKeys>
struct CacheTile {
    static constexpr int kOwn = IsKeys ? HeadDim : HeadTile<HeadDim>::kOwnValues;  // channels
    static constexpr int kWidth =
        IsKeys ? HeadTile<HeadDim>::kKeys : HeadTile<HeadDim>::kValues;  // of the tile
    static constexpr int kNumbers = kAttentionTile * kWidth * 2;         // bytes
    static constexpr int kCodes = kAttentionTile * kOwn;
    static constexpr int kScaleBytes = 2 * scale_places(HeadDim);  // of a row
    static constexpr int kScales = kAttentionTile * kScaleBytes;

    KNAP_HOST_DEVICE static constexpr int bytes(bool is_int8) {
        return align_tile(is_int8 ? kCodes + kScales : kNumbers);
    }
    __device__ static bool is_int8(const CudaShape& shape) {
        return IsKeys ? shape.has_int8_keys : shape.has_int8_values;
    }
    __device__ static int place(int row, int piece) {
        return tile_place(kAttentionTile, row, piece);
    }

    // One of eight threads begins to copy its part of a row, which is row `from_row` of the cache.
    __device__ static void copy_row(const CudaShape& shape,
                                    const CudaLayer& layer,
                                    std::size_t from_row,
                                    int value_part,
                                    std::uint8_t* to,
                                    int row,
                                    int thread) {
        const int channel = IsKeys ? 0 : value_part * kOwn;
        const std::uint8_t* from = IsKeys ? layer.keys : layer.values;
        if (!is_int8(shape)) {
            from += from_row * (2 * HeadDim) + 2 * channel;
#pragma unroll
            for (int piece = thread; piece < kOwn / 8; piece += 8) {
                copy16_async(to + 2 * place(row, piece), from + 16 * piece);
            }
            return;
        }
        from += from_row * HeadDim + channel;
#pragma unroll
        for (int piece = thread; piece < kOwn / 16; piece += 8) {
            copy16_async(to + row * kOwn + 16 * piece, from + 16 * piece);
        }
        if (thread == 7) {
            const auto* scales = reinterpret_cast<const std::uint8_t*>(IsKeys ? layer.key_scales
                                                                              : layer.value_scales);
            copy_async<kScaleBytes>(to + kCodes + row * kScaleBytes,
                                    scales + from_row * kScaleBytes);
        }
    }

    // All threads of the block turn codes into numbers.
    __device__ static void widen(const std::uint8_t* from, int value_part, std::uint16_t* to) {
        constexpr int kPieces = kOwn / 8;
        const auto* scales = reinterpret_cast<const std::uint16_t*>(from + kCodes) +
                             (IsKeys ? 0 : value_part * kOwn / kCacheBlock);
        for (int i = static_cast<int>(threadIdx.x); i < kAttentionTile * kPieces;
             i += static_cast<int>(blockDim.x)) {
            const int row = i / kPieces;
            const int piece = i % kPieces;
            const uint2 codes = *reinterpret_cast<const uint2*>(from + 8 * i);
            const std::uint16_t scale =
                scales[row * scale_places(HeadDim) + piece * 8 / kCacheBlock];
            *reinterpret_cast<uint4*>(to + place(row, piece)) =
                widen_codes(codes, __ushort_as_half(scale));
        }
    }
};

// The shared memory: wide tiles of an int8 cache, stages of tiles of keys and values, then the
// queries of each group of warps, then the totals of each warp.
template <int HeadDim, bool IsInt8>
struct AttentionMemory {
    using Keys = CacheTile<HeadDim, true>;
    using Values = CacheTile<HeadDim, false>;
    static constexpr int kQueries = kWarpColumns * HeadTile<HeadDim>::kKeys * 2;  // of a warp
    static constexpr int kTotals = kWarpColumns * kSumStride<HeadDim> * 4;
    static_assert(Keys::kNumbers % kTileAlignment == 0 && Values::kNumbers % kTileAlignment == 0);
    static_assert(kGroupWarps * kQueries % kTileAlignment == 0);

    int wide_values;  // where they begin; wide keys are first of all
    int stages;
    int stage;  // bytes of a stage
    int keys;   // of its keys
    int queries;

    KNAP_HOST_DEVICE explicit AttentionMemory(const CudaShape& shape)
        : wide_values(shape.has_int8_keys ? 2 * Keys::kNumbers : 0),
          stages(wide_values + (shape.has_int8_values ? 2 * Values::kNumbers : 0)),
          stage(Keys::bytes(shape.has_int8_keys) + Values::bytes(shape.has_int8_values)),
          keys(Keys::bytes(shape.has_int8_keys)),
          queries(stages + kAttentionStages<IsInt8> * stage) {}

    KNAP_HOST_DEVICE int totals(int n_warps) const { return queries + n_warps * kQueries; }
    KNAP_HOST_DEVICE std::size_t bytes(int n_warps) const {
        return static_cast<std::size_t>(totals(n_warps) + n_warps * kTotals);
    }
};

// The columns of a warp.
template <int HeadDim>
struct ColumnAttention {
    using Warp = WarpAttention<HeadDim, 1>;

    Warp share;
    static constexpr int kTiles = Warp::kTiles;
    float part[kTiles][4];
    float part_most[2];
    float part_weight[2];
    float total_most[2];
    float total_weight[2];
    const std::uint16_t* queries;  // of the group
    int warp;                      // of the group
    float* totals;                 // [16][kSumStride]; a lane has places of its own until the end
    int n_seen[2];                 // of columns g and g + 8
    int first_seen[2];             // likewise
    int least_seen;                // of the warp
    float soft_cap;                // of scores; 0: none
    int end_changed;               // scores of positions up to here are capped, or some are hidden
    int lane;
    bool has_sums = false;  // of the share, where groups multiply: else they hold anything

    __device__ void clear_part() {
#pragma unroll
        for (auto& tile : part) {
#pragma unroll
            for (float& x : tile) {
                x = 0;
            }
        }
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            part_most[row] = -INFINITY;
            part_weight[row] = 0;
        }
    }

    __device__ void clear() {
        clear_share();
        clear_part();
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            total_most[row] = -INFINITY;
            total_weight[row] = 0;
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
                *total(row, tile) = make_float2(0, 0);
            }
        }
    }

    __device__ float2* total(int row, int tile) const {
        return reinterpret_cast<float2*>(totals + (8 * row + lane / 4) * kSumStride<HeadDim> +
                                         8 * tile + lane % 4 * 2);
    }

    // The share is complete. One that has seen nothing changes nothing.
    __device__ void end_share() {
#if KNAP_HAS_GROUP_PRODUCTS
        if (!has_sums) {
            return;
        }
        has_sums = false;
#endif
        share.add_lanes();
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const MergeFactors by(part_most[row], share.most[0][row]);
            part_most[row] = by.most;
            part_weight[row] = by.merge(part_weight[row], share.weight[0][row]);
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
                for (int i = 2 * row; i < 2 * row + 2; ++i) {
                    part[tile][i] = by.merge(part[tile][i], share.out[0][tile][i]);
                }
            }
        }
        clear_share();
    }

    __device__ void clear_share() {
#if KNAP_HAS_GROUP_PRODUCTS
        share.clear_scalars();
#else
        share.clear();
#endif
    }

    __device__ void end_part() {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const MergeFactors by(total_most[row], part_most[row]);
            total_most[row] = by.most;
            total_weight[row] = by.merge(total_weight[row], part_weight[row]);
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
                float2* at = total(row, tile);
                const float2 before = *at;
                *at = make_float2(by.merge(before.x, part[tile][2 * row]),
                                  by.merge(before.y, part[tile][2 * row + 1]));
            }
        }
        clear_part();
    }

    __device__ __forceinline__ void change(float (&scores)[1][2][2][4], int first) const {
        if (soft_cap != 0.0f) {
            Warp::cap_scores(scores, soft_cap);
        }
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            Warp::hide_before(scores[0][step], first + kAttentionStep16 * step, first_seen, lane);
        }
    }

    __device__ __forceinline__ void score(const std::uint16_t* keys,
                                          float (&scores)[1][2][2][4]) const {
#if KNAP_HAS_GROUP_PRODUCTS
        auto& all = reinterpret_cast<float(&)[4][4]>(scores);
        begin_group_products();
#pragma unroll
        for (int step = 0; step < HeadDim / 16; ++step) {
            score_group(all, describe_rows(queries, kGroupColumns, step),
                        describe_rows(keys, kAttentionTile, step), step > 0);
        }
        finish_group_products();
#else
        Warp::template score<2, kGroupColumns, kAttentionTile>(queries + warp * kWarpColumns * 64,
                                                               keys, lane, scores);
#endif
    }

    // Of 16 positions.
    __device__ __forceinline__ void add_values(const std::uint16_t* values,
                                               int step,
                                               const float (&scores)[1][2][2][4]) {
        const int first = kAttentionStep16 * step;
#if KNAP_HAS_GROUP_PRODUCTS
        std::uint32_t weights[4];
        Warp::pack_weights(scores[0][step], weights);
        begin_group_products();
        sum_group_values(share.out[0], weights, describe_values(values, kAttentionTile, first),
                         has_sums);
        finish_group_products();
        has_sums = true;
#else
        share.template add_values<2, kAttentionTile>(values, first, scores, step, lane);
#endif
    }

    // The 32 positions from `first` on. Some column of the group sees the first of them, and none
    // sees more than `most_seen`.
    __device__ void run(const std::uint16_t* keys,
                        const std::uint16_t* values,
                        int first,
                        int most_seen) {
        float scores[1][2][2][4];
        score(keys, scores);
        if (first < end_changed) [[unlikely]] {
            change(scores, first);
        }
        // The weights of both halves before the first product, which they would wait for.
        const int n_steps = first + kAttentionStep16 < most_seen ? 2 : 1;
        float tops[2][2];
        typename Warp::Shrink shrinks[2];
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            const int at = first + kAttentionStep16 * step;
            if (at + kAttentionStep16 > least_seen) {
                Warp::hide_unseen(scores[0][step], at, n_seen, lane);
            }
            Warp::find_tops(scores[0][step], tops[step]);
        }
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            if (step < n_steps) {
                shrinks[step] = share.weigh(scores[0][step], tops[step], 0);
            }
        }
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            if (step < n_steps) {
                share.shrink_sums(shrinks[step], 0);
                add_values(values, step, scores);
            }
        }
        const int next = first + kAttentionTile;
        const int size = part_size(first);
        if ((next & (size / kPartShares - 1)) == 0) {
            end_share();
        }
        if ((next & (size - 1)) == 0) {
            end_part();
        }
    }
};

// The columns of a block of threads.
struct ColumnTile {
    const CudaShape& shape;
    CudaBlock block;
    int kv_head;
    int per_kv;  // query heads of a KV head
    int n_columns;

    __device__ ColumnTile(const AttentionArguments& args, int index, int kv)
        : shape(args.shape),
          block(args.pass.attentions[args.group].blocks[index]),
          kv_head(kv),
          per_kv(args.shape.n_heads / args.shape.n_kv_heads),
          n_columns(block.n_rows * per_kv) {}

    __device__ int row(int column) const { return block.first_row + column / per_kv; }
    __device__ int head(int column) const { return kv_head * per_kv + column % per_kv; }
};

// A warp's queries, from column `first` on, to its rows of the group's tile.
template <int HeadDim>
__device__ void load_queries(const AttentionArguments& args,
                             const ColumnTile& tile,
                             int first,
                             std::uint16_t* queries,
                             int warp,
                             int lane) {
    const CudaShape& shape = args.shape;
    const auto width = static_cast<std::size_t>(shape.n_q() + 2 * shape.n_kv());
    constexpr float kLog2e = 1.44269504088896f;
    const float scale = shape.attention_scale * kLog2e;
    auto* to = reinterpret_cast<__half*>(queries);
    const HeadsWork work(shape, args.pass, shape.layers[args.layer], HeadKind::query,
                         args.pass.turns, args.buffers.head_factors);
    const auto place = [&](int i, int channel) {
        return tile_place(kGroupColumns, warp * kWarpColumns + i, channel / 8) + channel % 8;
    };
    for (int i = 0; i < kWarpColumns; ++i) {
        const int column = first + i;
        if (column >= tile.n_columns) {
            for (int channel = lane; channel < HeadTile<HeadDim>::kKeys; channel += 32) {
                to[place(i, channel)] = __float2half_rn(0.0f);
            }
            continue;
        }
        const int row = tile.row(column);
        HeadPairs<HeadTile<HeadDim>::kPairs> head;
        head.load(shape,
                  args.buffers.heads + static_cast<std::size_t>(row) * width +
                      tile.head(column) * HeadDim,
                  lane);
        const float own_scale = shape.scales_queries
                                    ? __fmul_rn(scale, __ldg(&args.pass.rows[row].query_scale))
                                    : scale;
        head.turn(shape, work.of(shape, row, row, tile.head(column)), lane);
        head.give(shape, lane, [&](int channel, float x) {
            to[place(i, channel)] = __float2half_rn(x * own_scale);
        });
    }
}

// A warp gives its columns to the product that follows.
template <int HeadDim>
__device__ void give_columns(const AttentionArguments& args,
                             const ColumnTile& tile,
                             int value_part,
                             int first,
                             const float* totals,
                             int lane) {
    const InputWriter writer =
        input_writer(args.buffers, 1, args.stride, args.shape.n_q(), args.gives_halves);
    for (int i = 0; i < min(kWarpColumns, tile.n_columns - first); ++i) {
        const float* of = totals + i * kSumStride<HeadDim>;
        constexpr int kOwnValues = HeadTile<HeadDim>::kOwnValues;
        const float weight = of[kOwnValues];
        const int channel = tile.head(first + i) * HeadDim + value_part * kOwnValues;
#pragma unroll
        for (int block = 0; block < kOwnValues / 32; ++block) {
            writer.write(of[32 * block + lane] / weight, channel + 32 * block, tile.row(first + i),
                         lane);
        }
    }
}

__device__ __forceinline__ void announce_to_groups() {
#if KNAP_HAS_GROUP_PRODUCTS
    announce_writes();
#endif
}

// Blocks of threads: [block of rows][16 columns for each warp, the last first][KV head][part of
// values]. The last rows see most.
template <int HeadDim, bool IsInt8>
__global__ void __launch_bounds__(32 * kMaxAttentionWarps, 1)
    attention_kernel(const __grid_constant__ AttentionArguments args) {
    using Memory = AttentionMemory<HeadDim, IsInt8>;
    constexpr int kStages = kAttentionStages<IsInt8>;
    constexpr int kParts = HeadTile<HeadDim>::kParts;
    extern __shared__ __align__(1024) std::uint8_t shared[];
    const Memory memory(args.shape);
    // The same for all lanes, as the compiler should know.
    const int warp = __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 32, 0);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int n_warps = static_cast<int>(blockDim.x) / 32;
    const int n_kv = args.shape.n_kv_heads;
    const int value_part = static_cast<int>(blockIdx.x) % kParts;
    const int index = static_cast<int>(gridDim.x - 1 - blockIdx.x) / kParts;
    const ColumnTile tile(args, static_cast<int>(blockIdx.y), index % n_kv);
    const int first_column = index / n_kv * n_warps * kWarpColumns;
    if (first_column >= tile.n_columns) {
        return;  // all threads of the block
    }
    const int end_column = min(first_column + n_warps * kWarpColumns, tile.n_columns);
    const int own_column = first_column + warp * kWarpColumns;

    const int* n_seen = args.pass.attentions[args.group].n_seen;
    const int* first_seen = args.pass.attentions[args.group].first_seen;
    int last = 0;
    int lowest = first_seen != nullptr ? INT_MAX : 0;  // position that some column sees
    for (int row = tile.row(first_column) + lane; row <= tile.row(end_column - 1); row += 32) {
        last = max(last, __ldg(n_seen + row) - 1);
        lowest = first_seen != nullptr ? min(lowest, __ldg(first_seen + row)) : 0;
    }
    last = __reduce_max_sync(~0u, last);
    lowest = __reduce_min_sync(~0u, lowest);

    auto* queries = reinterpret_cast<std::uint16_t*>(
        shared + memory.queries + warp / kGroupWarps * kGroupWarps * Memory::kQueries);
    auto* totals =
        reinterpret_cast<float*>(shared + memory.totals(n_warps) + warp * Memory::kTotals);
    const CudaLayer& layer = args.shape.layers[args.layer];
    const PositionMap map =
        position_map(args.shape, args.pass.pages, args.pass.attentions[args.group].runs, tile.block,
                     tile.kv_head);
    const int first_tile = lowest / kAttentionTile;
    const int n_tiles = last / kAttentionTile + 1;
    const auto stage_of = [&](int t) {
        return shared + memory.stages + t % kStages * memory.stage;
    };
    const auto begin_copy = [&](int t) {
        constexpr int kRowThreads = 8;
        const int thread = static_cast<int>(threadIdx.x) % kRowThreads;
        std::uint8_t* to = stage_of(t);
        for (int row = static_cast<int>(threadIdx.x) / kRowThreads;
             t < n_tiles && row < kAttentionTile;
             row += static_cast<int>(blockDim.x) / kRowThreads) {
            // Positions beyond the last are copies of it, which nobody sees.
            const std::size_t from = map.at(min(t * kAttentionTile + row, last));
            Memory::Keys::copy_row(args.shape, layer, from, value_part, to, row, thread);
            Memory::Values::copy_row(args.shape, layer, from, value_part, to + memory.keys, row,
                                     thread);
        }
        end_copy_group();
    };
    // Of tile t: as they came, or wide.
    const bool has_wide_keys = IsInt8 && args.shape.has_int8_keys;
    const bool has_wide_values = IsInt8 && args.shape.has_int8_values;
    const auto keys_of = [&](int t) {
        return reinterpret_cast<std::uint16_t*>(
            has_wide_keys ? shared + t % 2 * Memory::Keys::kNumbers : stage_of(t));
    };
    const auto values_of = [&](int t) {
        return reinterpret_cast<std::uint16_t*>(
            has_wide_values ? shared + memory.wide_values + t % 2 * Memory::Values::kNumbers
                            : stage_of(t) + memory.keys);
    };
    const auto widen = [&](int t) {
        const std::uint8_t* from = stage_of(t);
        if (has_wide_keys) {
            Memory::Keys::widen(from, value_part, keys_of(t));
        }
        if (has_wide_values) {
            Memory::Values::widen(from + memory.keys, value_part, values_of(t));
        }
    };
#pragma unroll
    for (int t = 0; t < kStages - 1; ++t) {
        begin_copy(first_tile + t);
    }
    load_queries<HeadDim>(args, tile, own_column, queries, warp % kGroupWarps, lane);

    ColumnAttention<HeadDim> columns;
    columns.queries = queries;
    columns.warp = warp % kGroupWarps;
    columns.totals = totals;
    columns.soft_cap = args.shape.soft_cap;
    columns.lane = lane;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int column = own_column + 8 * half + lane / 4;
        columns.n_seen[half] = column < end_column ? __ldg(n_seen + tile.row(column)) : 0;
        columns.first_seen[half] =
            column < end_column && first_seen != nullptr ? __ldg(first_seen + tile.row(column)) : 0;
    }
    columns.end_changed =
        columns.soft_cap != 0.0f
            ? INT_MAX
            : __reduce_max_sync(~0u, max(columns.first_seen[0], columns.first_seen[1]));
    // By a column of the group.
    int most_seen = 0;
    for (int i = lane; i < kGroupColumns; i += 32) {
        const int column = first_column + warp / kGroupWarps * kGroupColumns + i;
        if (column < end_column) {
            most_seen = max(most_seen, __ldg(n_seen + tile.row(column)));
        }
    }
    most_seen = __reduce_max_sync(~0u, most_seen);
    columns.least_seen = __reduce_min_sync(~0u, min(columns.n_seen[0], columns.n_seen[1]));
    columns.clear();
    if constexpr (IsInt8) {
        wait_copy_groups<kStages - 2>();
        __syncthreads();
        widen(first_tile);
    }
    for (int t = first_tile; t < n_tiles; ++t) {
        // Tile t has arrived, or t + 1 where t is wide already, and all warps are done with t - 1,
        // whose place the copy takes.
        wait_copy_groups<IsInt8 ? kStages - 3 : kStages - 2>();
        announce_to_groups();
        __syncthreads();
        begin_copy(t + kStages - 1);
        if (IsInt8 && t + 1 < n_tiles) {
            widen(t + 1);
        }
        if (t * kAttentionTile < most_seen) {
            columns.run(keys_of(t), values_of(t), t * kAttentionTile, most_seen);
        }
    }
    columns.end_share();
    columns.end_part();
    if (lane % 4 == 0) {
        float* weights = totals + HeadTile<HeadDim>::kOwnValues;
        weights[lane / 4 * kSumStride<HeadDim>] = columns.total_weight[0];
        weights[(8 + lane / 4) * kSumStride<HeadDim>] = columns.total_weight[1];
    }
    __syncwarp();
    give_columns<HeadDim>(args, tile, value_part, own_column, totals, lane);
}

// As many warps to a block as there is room for, but rather fewer than idle multiprocessors.
template <int HeadDim, bool IsInt8>
void start_attention_of(const CudaDevice& device,
                        const AttentionArguments& args,
                        std::span<const CudaBlock> blocks,
                        cudaStream_t stream) {
    const AttentionMemory<HeadDim, IsInt8> memory(args.shape);
    const int per_kv = args.shape.n_heads / args.shape.n_kv_heads;
    const int n_items = args.shape.n_kv_heads * HeadTile<HeadDim>::kParts;
    const auto count = [&](int n_rows, int n_warps) {
        const int n = n_warps * kWarpColumns;
        return (n_rows * per_kv + n - 1) / n;
    };
    const auto count_all = [&](int n_warps) {
        int n = 0;
        for (const CudaBlock& block : blocks) {
            n += count(block.n_rows, n_warps) * n_items;
        }
        return n;
    };
    int n_warps = kMaxAttentionWarps;
    while (n_warps > kGroupWarps && (memory.bytes(n_warps) > device.shared_bytes ||
                                     count_all(n_warps) * 4 < device.n_processors * 3)) {
        n_warps /= 2;
    }
    int n_tiles = 0;
    for (const CudaBlock& block : blocks) {
        n_tiles = std::max(n_tiles, count(block.n_rows, n_warps));
    }
    if (n_tiles == 0) {
        return;
    }
    const dim3 grid(static_cast<unsigned>(n_tiles * n_items), static_cast<unsigned>(blocks.size()));
    allow_shared_memory<attention_kernel<HeadDim, IsInt8>>(memory.bytes(n_warps));
    attention_kernel<HeadDim, IsInt8>
        <<<grid, static_cast<unsigned>(32 * n_warps), memory.bytes(n_warps), stream>>>(args);
    check_cuda(cudaGetLastError(), "starting attention");
}

}  // namespace

void start_attention(const CudaDevice& device,
                     const AttentionArguments& arguments,
                     std::span<const CudaBlock> blocks,
                     cudaStream_t stream) {
    const auto start = [&]<int HeadDim>() {
        if (arguments.shape.has_int8_cache()) {
            start_attention_of<HeadDim, true>(device, arguments, blocks, stream);
        } else {
            start_attention_of<HeadDim, false>(device, arguments, blocks, stream);
        }
    };
    switch (arguments.shape.head_dim) {
#define KNAP_CASE(HEAD_DIM)                    \
    case HEAD_DIM:                             \
        start.template operator()<HEAD_DIM>(); \
        break;
        KNAP_HEAD_SIZES(KNAP_CASE)
#undef KNAP_CASE
        default:
            fail("GPU: no attention for heads of ", arguments.shape.head_dim, " channels");
    }
}

}  // namespace knap
