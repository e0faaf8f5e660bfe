// Attention in the step kernel: items are parts of the context, for each KV head and each block of
// rows.
#pragma once

#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/step_context.cuh"

namespace knap {

struct AttentionItem {
    int block = 0;
    int part = 0;
    int kv_head = 0;
    int value_part = 0;  // see HeadTile
};

// How many positions a row sees now.
__device__ inline int seen_by(const StepContext& c, const CudaAttention& attention, int row) {
    return c.own(attention.n_seen)[row] + (c.is_chain() ? c.step : 0);
}

// The first position that a row sees now.
__device__ inline int first_seen_by(const StepContext& c, const CudaAttention& attention, int row) {
    return attention.first_seen != nullptr
               ? c.own(attention.first_seen)[c.is_chain() ? c.step : row]
               : 0;
}

__device__ inline int parts_of(const StepContext& c, const CudaAttention& attention, int row) {
    return count_parts(seen_by(c, attention, row));
}

__device__ inline int end_part(const StepContext& c,
                               const CudaAttention& attention,
                               const CudaBlock& block) {
    return c.is_chain() ? parts_of(c, attention, 0) : block.end_part;
}

// Items in order: later parts are larger and come first, so that blocks finish together.
__device__ inline bool find_item(const StepContext& c,
                                 const CudaAttention& attention,
                                 int n_value_parts,
                                 int index,
                                 AttentionItem& item) {
    const int n_of_part = c.args.shape.n_kv_heads * n_value_parts;
    for (int i = 0; i < attention.n_blocks; ++i) {
        const CudaBlock& block = c.own(attention.blocks)[i];
        const int end = end_part(c, attention, block);
        const int n = (end - block.first_part) * n_of_part;
        if (index < n) {
            const int within = index % n_of_part;
            item = {i, end - 1 - index / n_of_part, within / n_value_parts, within % n_value_parts};
            return true;
        }
        index -= n;
    }
    return false;
}

// The attention of a head is complete: a lane has channel `channel` of it.
__device__ __forceinline__ void give_head(const StepContext& c,
                                          const CudaPhase& phase,
                                          int stride,
                                          const SoftmaxState& state,
                                          int row,
                                          int head,
                                          int channel,
                                          int lane) {
    const CudaShape& shape = c.args.shape;
    const InputWriter writer =
        input_writer(c.args.buffers, 1, stride, shape.n_q(), phase.gives_halves);
    writer.write(state.sum / state.weight, head * shape.head_dim + channel - lane, row, lane);
}

// [max_parts][head_dim + 2] of a head: sums of channels, the largest score, the weight.
__device__ inline float* partials_of(const StepContext& c, int row, int head) {
    const CudaBuffers& buffers = c.args.buffers;
    const CudaShape& shape = c.args.shape;
    return buffers.partials +
           (row * shape.n_heads + head) * buffers.max_parts * (shape.head_dim + 2);
}

inline constexpr int kMaxMergedParts = 256;  // whose factors are kept at once

// Of the threads that merge a head: whole warps.
__device__ __forceinline__ void sync_head(int index, int n_threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(2 + index), "r"(n_threads) : "memory");
}

// The parts of a head, in order, by as many threads as it has channels. `index` numbers those that
// do so at the same time.
__device__ __forceinline__ void merge_parts(const StepContext& c,
                                            const CudaPhase& phase,
                                            int first_part,
                                            int n_parts,
                                            int row,
                                            int head,
                                            int index,
                                            int stride) {
    const int head_dim = c.args.shape.head_dim;
    const int size = head_dim + 2;
    const int channel = c.thread % head_dim;
    const float* partials = partials_of(c, row, head);
    float* tops = reinterpret_cast<float*>(c.region()) + index * kMaxMergedParts * 5;
    float* weights = tops + kMaxMergedParts;
    auto* factors = reinterpret_cast<MergeFactors*>(tops + 2 * kMaxMergedParts);
    SoftmaxState state;
#pragma unroll 1
    for (int begin = first_part; begin < n_parts; begin += kMaxMergedParts) {
        const int n = min(kMaxMergedParts, n_parts - begin);
        const float* from = partials + begin * size;
        sync_head(index, head_dim);
        for (int part = channel; part < n; part += head_dim) {
            tops[part] = __ldcg(from + part * size + head_dim);
            weights[part] = __ldcg(from + part * size + head_dim + 1);
        }
        sync_head(index, head_dim);
        for (int part = channel; part < n; part += head_dim) {
            float most = state.most;
#pragma unroll 8
            for (int i = 0; i < part; ++i) {
                most = fmaxf(most, tops[i]);
            }
            factors[part] = MergeFactors(most, tops[part]);
        }
        sync_head(index, head_dim);
        constexpr int kAtOnce = 16;  // loads under way
#pragma unroll 1
        for (int part = 0; part < n; part += kAtOnce) {
            float next[kAtOnce];
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                next[k] = __ldcg(from + min(part + k, n - 1) * size + channel);
            }
#pragma unroll
            for (int k = 0; k < kAtOnce; ++k) {
                if (part + k < n) {
                    const MergeFactors by = factors[part + k];
                    state.sum = by.merge(state.sum, next[k]);
                    state.weight = by.merge(state.weight, weights[part + k]);
                    state.most = by.most;
                }
            }
        }
    }
    give_head(c, phase, stride, state, row, head, channel, c.lane);
}

// All rows' heads, when all of their parts are there.
__device__ __forceinline__ void merge_heads(const StepContext& c,
                                            const CudaPhase& phase,
                                            const CudaAttention& attention,
                                            int stride) {
    const CudaShape& shape = c.args.shape;
    const int index = c.thread / shape.head_dim;
    const int n_at_once = kStepThreads / shape.head_dim;
    if (index >= n_at_once) {
        return;
    }
#pragma unroll 1
    for (int i = index * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
         i < c.pass.n_rows * shape.n_heads; i += n_at_once * static_cast<int>(gridDim.x)) {
        const int row = i / shape.n_heads;
        const int first_part =
            attention.first_seen != nullptr ? part_of(first_seen_by(c, attention, row)) : 0;
        merge_parts(c, phase, first_part, parts_of(c, attention, row), row, i % shape.n_heads,
                    index, stride);
    }
}

// What attention has in the region: queries, of each warp 16 keys and 16 values with their scales,
// and what the warps' states are merged by. The states themselves take the places of keys and
// values.
template <int HeadDim, int Groups>
struct AttentionRegion {
    static constexpr int kColumns = 16 * Groups;
    static constexpr int kKeys = kAttentionStep16 * HeadTile<HeadDim>::kKeys;  // numbers
    static constexpr int kValues = kAttentionStep16 * HeadTile<HeadDim>::kValues;
    static constexpr int kScales = kAttentionStep16 * scale_places(HeadDim);  // of each
    static constexpr int kWarp = kKeys + kValues + 2 * kScales;               // numbers of a warp
    static constexpr int kTiles = kColumns * HeadTile<HeadDim>::kKeys * 2;
    static constexpr int kFactors = kTiles + kStepWarps * kWarp * 2;
    static constexpr int kTops =
        kFactors + kStepWarps * kColumns * static_cast<int>(sizeof(MergeFactors));
    static constexpr int kWeights = kTops + kStepWarps * kColumns * 4;
    static constexpr int kBytes = kWeights + kStepWarps * kColumns * 4;
    static_assert(8 * kSumStride<HeadDim> * 4 <= kWarp * 2);
    static_assert(kStepThreads / HeadDim * kMaxMergedParts * 5 * 4 <= kBytes);
};

// 16 rows of a head, in shared memory, of which a lane copies some. Codes of an int8 cache come to
// the end of the place that the numbers take.
template <int HeadDim, bool IsKeys>
struct TileRows {
    static constexpr int kWidth =
        IsKeys ? HeadTile<HeadDim>::kKeys : HeadTile<HeadDim>::kValues;  // of the tile
    static constexpr int kOwn = IsKeys ? HeadDim : HeadTile<HeadDim>::kOwnValues;
    static constexpr int kScaleBytes = 2 * scale_places(HeadDim);
    static constexpr int kCodesAt = kAttentionStep16 * (2 * kWidth - kOwn);  // bytes

    __device__ static int place(int row, int piece) {
        return tile_place(kAttentionStep16, row, piece);
    }

    // Calls copy(row, piece) for every 16 bytes of a row that this lane copies.
    template <int RowBytes, bool IsUnrolled, typename Copy>
    __device__ __forceinline__ static void for_each_piece(int lane, Copy copy) {
        constexpr int kPieces = RowBytes / 16;
        forget(lane);
        if constexpr (IsUnrolled && 32 % kPieces == 0) {
            constexpr int kRows = 32 / kPieces;  // that lanes copy at once
#pragma unroll
            for (int i = 0; i < kAttentionStep16 / kRows; ++i) {
                copy(kRows * i + lane / kPieces, lane % kPieces);
            }
        } else {
#pragma unroll 1
            for (int i = lane; i < kAttentionStep16 * kPieces; i += 32) {
                copy(i / kPieces, i % kPieces);
            }
        }
    }

    // Turns codes into numbers, which take their place: where the codes of eight rows are not in
    // the way of others' numbers, eight rows at a time.
    __device__ __forceinline__ static void widen(std::uint16_t* tile,
                                                 const std::uint16_t* scales,
                                                 int first_channel,
                                                 int lane) {
        constexpr int kTimes = kWidth <= 128 ? 2 : 1;
        constexpr int kRows = kAttentionStep16 / kTimes;
        constexpr int kPieces = kOwn / 8;
        constexpr int kLoads = (kRows * kPieces + 31) / 32;
        const auto* codes = reinterpret_cast<const std::uint8_t*>(tile) + kCodesAt;
        forget(lane);
#pragma unroll
        for (int half = 0; half < kTimes; ++half) {
            uint2 loaded[kLoads];
#pragma unroll
            for (int i = 0; i < kLoads; ++i) {
                const int at = min(lane + 32 * i, kRows * kPieces - 1);
                loaded[i] =
                    *reinterpret_cast<const uint2*>(codes + (half * kRows * kPieces + at) * 8);
            }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < kLoads; ++i) {
                const int at = min(lane + 32 * i, kRows * kPieces - 1);
                const int row = half * kRows + at / kPieces;
                const int piece = at % kPieces;
                const std::uint16_t scale =
                    scales[row * scale_places(HeadDim) + (first_channel / 8 + piece) / 4];
                *reinterpret_cast<uint4*>(tile + place(row, piece)) =
                    widen_codes(loaded[i], __ushort_as_half(scale));
            }
            __syncwarp();
        }
    }
};

// A warp's way through its positions, 16 at a time. It copies the next keys when it is done with
// those it has, and the next values likewise.
template <int HeadDim, bool IsInt8>
struct TileCopies {
    const CudaShape& shape;
    CudaLayer layer;
    PositionMap map;
    std::uint16_t* keys;
    std::uint16_t* values;
    std::uint16_t* key_scales;
    std::uint16_t* value_scales;
    int first_value;  // channel
    int last;         // positions beyond it are copies of it, which nobody sees
    int lane;
    int page = -1;  // that was looked up last
    std::size_t page_offset = 0;
    // The tile to copy.
    int first = 0;
    bool is_whole = false;  // in one piece, which begins at
    std::size_t offset = 0;

    __device__ void find(int position) {
        first = position;
        const int run = map.run_of(first);
        const int row = map.runs[run].row + first - map.runs[run].position;
        is_whole =
            row % kCudaPageRows <= kCudaPageRows - kAttentionStep16 &&
            (run + 1 == map.n_runs || map.runs[run + 1].position - first >= kAttentionStep16);
        if (row / kCudaPageRows != page) {
            page = row / kCudaPageRows;
            forget(map.kv_head);
            page_offset = map.row_offset(page * kCudaPageRows);
        }
        offset = page_offset + static_cast<std::size_t>(row % kCudaPageRows);
    }

    // The row of the cache that row `i` of the tile is.
    __device__ std::size_t row_of(int i) const {
        const int seen = min(i, last - first);
        return is_whole ? offset + static_cast<std::size_t>(seen) : map.at(first + seen);
    }

    // Copies rows of `Bytes` bytes, which are `Pitch` bytes apart in the cache; `place(row, piece)`
    // is where 16 bytes go.
    template <int Bytes, int Pitch, bool IsKeys, typename Place>
    __device__ __forceinline__ void copy_bytes(const std::uint8_t* from, Place place) const {
        using Rows = TileRows<HeadDim, IsKeys>;
        if (is_whole && last - first >= kAttentionStep16 - 1) {
            const std::uint8_t* at = from + offset * Pitch;
            Rows::template for_each_piece<Bytes, true>(lane, [&](int row, int piece) {
                copy16_async(place(row, piece), at + row * Pitch + piece * 16);
            });
        } else {
            Rows::template for_each_piece<Bytes, false>(lane, [&](int row, int piece) {
                copy16_async(place(row, piece), from + row_of(row) * Pitch + piece * 16);
            });
        }
    }

    template <bool IsKeys>
    __device__ bool is_int8() const {
        return IsInt8 && (IsKeys ? shape.has_int8_keys : shape.has_int8_values);
    }

    template <bool IsKeys>
    __device__ __forceinline__ void copy() const {
        using Rows = TileRows<HeadDim, IsKeys>;
        const std::uint8_t* cache = IsKeys ? layer.keys : layer.values;
        std::uint16_t* to = IsKeys ? keys : values;
        const int channel = IsKeys ? 0 : first_value;
        if (is_int8<IsKeys>()) {
            auto* codes = reinterpret_cast<std::uint8_t*>(to) + Rows::kCodesAt;
            copy_bytes<Rows::kOwn, HeadDim, IsKeys>(cache + channel, [&](int row, int piece) {
                return codes + row * Rows::kOwn + piece * 16;
            });
            if (lane < kAttentionStep16) {
                const auto* scales = reinterpret_cast<const std::uint8_t*>(
                    IsKeys ? layer.key_scales : layer.value_scales);
                copy_async<Rows::kScaleBytes>(
                    (IsKeys ? key_scales : value_scales) + lane * scale_places(HeadDim),
                    scales + row_of(lane) * Rows::kScaleBytes);
            }
        } else {
            copy_bytes<2 * Rows::kOwn, 2 * HeadDim, IsKeys>(
                cache + 2 * channel,
                [&](int row, int piece) { return to + Rows::place(row, piece); });
        }
        end_copy_group();
    }

    // What copy() brought is there: by all lanes, before they read it.
    template <bool IsKeys>
    __device__ __forceinline__ void widen() const {
        if (is_int8<IsKeys>()) {
            TileRows<HeadDim, IsKeys>::widen(IsKeys ? keys : values,
                                             IsKeys ? key_scales : value_scales,
                                             IsKeys ? 0 : first_value, lane);
        }
    }

    __device__ __forceinline__ void copy_both() const {
        copy<true>();
        copy<false>();
    }
};

// Positions [begin, end) of a part, whose first 16 are being copied. change(scores, first) does
// what the model wants with the scores of the positions from `first` on, up to `end_changed`.
template <int HeadDim, int Groups, bool IsInt8, typename Change>
__device__ __forceinline__ void attend_to(WarpAttention<HeadDim, Groups>& warp,
                                          TileCopies<HeadDim, IsInt8>& tiles,
                                          const std::uint16_t* queries,
                                          const int (&n_seen)[Groups][2],
                                          int begin,
                                          int end,
                                          int end_changed,
                                          int lane,
                                          Change change) {
#pragma unroll 1
    for (int first = begin; first < end; first += kAttentionStep16) {
        const int next = first + kAttentionStep16;
        float scores[Groups][1][2][4];
        wait_copy_groups<1>();
        __syncwarp();
        tiles.template widen<true>();
        warp.template score<1, 16 * Groups, kAttentionStep16>(queries, tiles.keys, lane, scores);
        __syncwarp();
        if (next < end) {
            tiles.find(next);
            tiles.template copy<true>();
        } else {
            end_copy_group();
        }
        if (first < end_changed) [[unlikely]] {
            change(scores, first);
        }
#pragma unroll
        for (int group = 0; group < Groups; ++group) {
            float(&own)[2][4] = scores[group][0];
            warp.hide_unseen(own, first, n_seen[group], lane);
            float tops[2];
            warp.find_tops(own, tops);
            warp.shrink_sums(warp.weigh(own, tops, group), group);
        }
        wait_copy_groups<1>();
        __syncwarp();
        tiles.template widen<false>();
        warp.template add_values<1, kAttentionStep16>(tiles.values, 0, scores, 0, lane);
        __syncwarp();
        if (next < end) {
            tiles.template copy<false>();
        }
    }
    warp.add_lanes();
}

// Hides what is before the layers' own window. row_at(column) is the row of a column.
template <int HeadDim, int Groups, typename RowAt>
__device__ __forceinline__ void hide(const StepContext& c,
                                     const CudaAttention& attention,
                                     RowAt row_at,
                                     int n_columns,
                                     int first,
                                     float (&scores)[Groups][1][2][4]) {
#pragma unroll
    for (int group = 0; group < Groups; ++group) {
        int first_seen[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int column = min(16 * group + 8 * i + c.lane / 4, n_columns - 1);
            first_seen[i] = first_seen_by(c, attention, row_at(column));
        }
        WarpAttention<HeadDim, Groups>::hide_before(scores[group][0], first, first_seen, c.lane);
    }
}

template <int HeadDim, int Groups, bool IsInt8>
__device__ __forceinline__ void attend(const StepContext& c,
                                       const CudaPhase& phase,
                                       const CudaAttention& attention,
                                       const AttentionItem& item,
                                       int stride) {
    using Region = AttentionRegion<HeadDim, Groups>;
    constexpr int kKeys = HeadTile<HeadDim>::kKeys;
    const CudaShape& shape = c.args.shape;
    const CudaBlock& block = c.own(attention.blocks)[item.block];
    const CudaLayer& layer = c.own(c.pass.layers)[phase.layer];
    const float* turns = c.own(c.pass.turns);
    const int per_kv = shape.n_heads / shape.n_kv_heads;
    const int n_columns = block.n_rows * per_kv;
    // Columns divided by per_kv: exact, for there are at most 32 of them.
    const int inverse = (1 << 16) / per_kv + 1;
    const auto row_at = [&](int column) { return block.first_row + (column * inverse >> 16); };
    const auto head_at = [&](int column) {
        return item.kv_head * per_kv + column - (column * inverse >> 16) * per_kv;
    };
    const int width = shape.n_q() + 2 * shape.n_kv();
    const int begin = part_begin(item.part);
    const int end = part_begin(item.part + 1);
    const int share = (end - begin) / kStepWarps;
    int last = 0;
    int lowest = attention.first_seen != nullptr ? end : 0;  // position that some row sees
    int end_hidden = 0;  // from here on all rows see what is not after them
#pragma unroll 1
    for (int row = 0; row < block.n_rows; ++row) {
        last = max(last, seen_by(c, attention, block.first_row + row) - 1);
        if (attention.first_seen != nullptr) {
            const int first_seen = first_seen_by(c, attention, block.first_row + row);
            lowest = min(lowest, first_seen);
            end_hidden = max(end_hidden, first_seen);
        }
    }
    const int own_begin = begin + c.warp * share;
    const int own_end = min(own_begin + share, last + 1);
    // Tiles that nobody sees would change nothing.
    const int own = max(own_begin, lowest / kAttentionStep16 * kAttentionStep16);
    auto* queries = reinterpret_cast<std::uint16_t*>(c.region());
    auto* tile =
        reinterpret_cast<std::uint16_t*>(c.region() + Region::kTiles) + c.warp * Region::kWarp;
    std::uint16_t* scales = tile + Region::kKeys + Region::kValues;
    constexpr int kOwnValues = HeadTile<HeadDim>::kOwnValues;
    const int first_value = item.value_part * kOwnValues;
    TileCopies<HeadDim, IsInt8> tiles{
        shape,
        layer,
        position_map(shape, c.pass.pages, c.own(attention.runs), block, item.kv_head),
        tile,
        tile + Region::kKeys,
        scales,
        scales + Region::kScales,
        first_value,
        last,
        c.lane};
    using Pairs = HeadPairs<HeadTile<HeadDim>::kPairs>;
    const auto load_head = [&](int column) {
        Pairs head;
        head.load(shape, c.args.buffers.heads + row_at(column) * width + head_at(column) * HeadDim,
                  c.lane);
        return head;
    };
    Pairs next = load_head(min(c.warp, n_columns - 1));
    // Rows of this pass that the part may hold are stored first, whoever else stores them too.
    const int first_new = block.first_new;
    const bool is_early = own + kAttentionStep16 <= first_new;
    if (own < own_end) {
        tiles.find(own);
        if (is_early) {
            tiles.copy_both();
        }
    }
    if (end > first_new) {
        const HeadsWork work(shape, c.pass, layer, HeadKind::key, turns,
                             c.args.buffers.head_factors);
        // The first warps have the queries: the last ones begin here.
#pragma unroll 1
        for (int i = kStepWarps - 1 - c.warp; i < block.n_stored; i += kStepWarps) {
            const int column = block.first_stored + i;
            const int row = c.row_of(column);
            store_row<HeadTile<HeadDim>::kPairs, IsInt8>(
                shape, layer, c.args.buffers.heads + column * width,
                work.of(shape, row, column, item.kv_head), item.kv_head,
                c.own(c.pass.rows)[row].stored, c.lane);
        }
    }
    constexpr float kLog2e = 1.44269504088896f;
    const float scale = shape.attention_scale * kLog2e;
    const HeadsWork work(shape, c.pass, layer, HeadKind::query, turns, c.args.buffers.head_factors);
#pragma unroll 1
    for (int column = c.warp; column < Region::kColumns; column += kStepWarps) {
        auto* to = reinterpret_cast<__half*>(queries);
        if (column >= n_columns) {
            for (int i = c.lane; i < kKeys; i += 32) {
                to[tile_place(Region::kColumns, column, i / 8) + i % 8] = __float2half_rn(0.0f);
            }
            continue;
        }
        Pairs head = next;
        next = load_head(min(column + kStepWarps, n_columns - 1));
        const int row = c.row_of(row_at(column));
        const float own_scale =
            shape.scales_queries ? __fmul_rn(scale, c.own(c.pass.rows)[row].query_scale) : scale;
        head.turn(shape, work.of(shape, row, row_at(column), head_at(column)), c.lane);
        head.give(shape, c.lane, [&](int channel, float x) {
            to[tile_place(Region::kColumns, column, channel / 8) + channel % 8] =
                __float2half_rn(x * own_scale);
        });
    }
    __threadfence_block();
    sync_warps();
    if (!is_early && own < own_end) {
        tiles.copy_both();
    }
    int n_seen[Groups][2];
#pragma unroll
    for (int i = 0; i < 2 * Groups; ++i) {
        const int column = 8 * i + c.lane / 4;
        n_seen[i / 2][i % 2] = column < n_columns ? seen_by(c, attention, row_at(column)) : 0;
    }
    WarpAttention<HeadDim, Groups> warp;
    warp.clear();
    const int end_changed = shape.soft_cap != 0.0f ? last + 1 : end_hidden;
    attend_to(warp, tiles, queries, n_seen, own, own_end, end_changed, c.lane,
              [&](float(&scores)[Groups][1][2][4], int first) {
                  if (shape.soft_cap != 0.0f) {
                      warp.cap_scores(scores, shape.soft_cap);
                  }
                  if (end_hidden > 0) {
                      hide<HeadDim>(c, attention, row_at, n_columns, first, scores);
                  }
              });

    // The warps' states are merged in order, eight columns at a time.
    const auto* states = reinterpret_cast<const float*>(c.region() + Region::kTiles);
    auto* factors = reinterpret_cast<MergeFactors*>(c.region() + Region::kFactors);
    auto* tops = reinterpret_cast<float*>(c.region() + Region::kTops);
    auto* weights = reinterpret_cast<float*>(c.region() + Region::kWeights);
    warp.write_scalars(tops + c.warp * Region::kColumns, weights + c.warp * Region::kColumns,
                       c.lane);
    sync_warps();
    if (c.thread < kStepWarps * Region::kColumns) {
        const int column = c.thread % Region::kColumns;
        float most = -INFINITY;
        for (int i = column; i < c.thread; i += Region::kColumns) {
            most = fmaxf(most, tops[i]);
        }
        factors[c.thread] = MergeFactors(most, tops[c.thread]);
    }
#pragma unroll 1
    for (int half = 0; 8 * half < n_columns; ++half) {
        if (half > 0) {
            sync_warps();
        }
        auto* to = reinterpret_cast<float*>(tile);
        switch (half) {
            case 0:
                warp.template write<0>(to, c.lane);
                break;
            case 1:
                warp.template write<1>(to, c.lane);
                break;
            case 2:
                warp.template write<2 * (Groups - 1)>(to, c.lane);
                break;
            default:
                warp.template write<2 * (Groups - 1) + 1>(to, c.lane);
                break;
        }
        sync_warps();
        // A warp has a column.
        const int column = 8 * half + c.warp;
        if (column >= n_columns) {
            continue;
        }
        constexpr int kChannels = kOwnValues / 32;  // of a lane
        // One after the other, so that lanes that share a scale are neighbours, if their number is
        // a power of two.
        constexpr bool kIsTogether = (kChannels & (kChannels - 1)) == 0;
        const auto channel = [&](int i) {
            return kIsTogether ? kChannels * c.lane + i : c.lane + 32 * i;
        };
        const float* state = states + c.warp * kSumStride<HeadDim>;
        float most = 0;
        float weight = 0;
        float numbers[kChannels] = {};
#pragma unroll
        for (int w = 0; w < kStepWarps; ++w) {
            const MergeFactors by = factors[w * Region::kColumns + column];
            most = by.most;
            weight = by.merge(weight, weights[w * Region::kColumns + column]);
#pragma unroll
            for (int i = 0; i < kChannels; ++i) {
                numbers[i] = by.merge(numbers[i], state[w * Region::kWarp / 2 + channel(i)]);
            }
        }
        const int row = row_at(column);
        const int head = head_at(column);
        if (attention.merges) {
            float* partial = partials_of(c, row, head) + item.part * (HeadDim + 2);
#pragma unroll
            for (int i = 0; i < kChannels; ++i) {
                partial[first_value + channel(i)] = numbers[i];
            }
            if (c.lane == 0 && item.value_part == 0) {
                partial[HeadDim] = most;
                partial[HeadDim + 1] = weight;
            }
        } else {
#pragma unroll
            for (float& x : numbers) {
                x = x / weight;
            }
            const InputWriter writer =
                input_writer(c.args.buffers, 1, stride, shape.n_q(), phase.gives_halves);
            const int first = head * HeadDim + first_value;
            if constexpr (kIsTogether) {
                writer.write_all(numbers, first, row, c.lane);
            } else {
#pragma unroll
                for (int i = 0; i < kChannels; ++i) {
                    writer.write(numbers[i], first + 32 * i, row, c.lane);
                }
            }
        }
    }
    sync_warps();  // before the next item writes what this one read
}

template <int HeadDim, int Columns, bool IsInt8>
__device__ __forceinline__ void run_attention_of(StepContext& c, const CudaPhase& phase) {
    const CudaAttention& attention = c.pass.attentions[phase.group];
    const auto n_blocks = static_cast<int>(gridDim.x);
    const auto place = static_cast<int>(blockIdx.x);
    AttentionItem item;
    // Forth and back: who gets a large item gets a small one next. The last blocks come first, for
    // they have least of other work.
#pragma unroll 1
    for (int round = 0;; ++round) {
        const int index = round * n_blocks + (round % 2 == 0 ? n_blocks - 1 - place : place);
        if (!find_item(c, attention, HeadTile<HeadDim>::kParts, index, item)) {
            break;
        }
        if constexpr (Columns == 1 || max_cuda_columns(HeadDim) == 16) {
            attend<HeadDim, 1, IsInt8>(c, phase, attention, item, Columns);
        } else {
            const int n_columns = c.own(attention.blocks)[item.block].n_rows *
                                  (c.args.shape.n_heads / c.args.shape.n_kv_heads);
            if (n_columns <= 16) {
                attend<HeadDim, 1, IsInt8>(c, phase, attention, item, Columns);
            } else {
                attend<HeadDim, 2, IsInt8>(c, phase, attention, item, Columns);
            }
        }
    }
    if (attention.merges) {
        c.wait_for_blocks();
        merge_heads(c, phase, attention, Columns);
    }
}

// The code for int8 caches serves f16 too, where heads have another size than most models'.
template <int Columns>
__device__ __forceinline__ void run_attention(StepContext& c, const CudaPhase& phase) {
    const CudaShape& shape = c.args.shape;
    if (!shape.has_int8_cache() && shape.head_dim == 64) {
        run_attention_of<64, Columns, false>(c, phase);
    } else if (!shape.has_int8_cache() && shape.head_dim == 128) {
        run_attention_of<128, Columns, false>(c, phase);
    } else {
        switch (shape.head_dim) {
#define KNAP_CASE(HEAD_DIM)                                  \
    case HEAD_DIM:                                           \
        run_attention_of<HEAD_DIM, Columns, true>(c, phase); \
        break;
            KNAP_HEAD_SIZES(KNAP_CASE)
#undef KNAP_CASE
            default:
                break;
        }
    }
}

// Keys and values of all rows, where nobody wants the attention itself.
__device__ __forceinline__ void store_rows(const StepContext& c, const CudaPhase& phase) {
    const CudaShape& shape = c.args.shape;
    const int width = shape.n_q() + 2 * shape.n_kv();
    const CudaLayer& layer = c.own(c.pass.layers)[phase.layer];
    const HeadsWork work(shape, c.pass, layer, HeadKind::key, c.own(c.pass.turns),
                         c.args.buffers.head_factors);
    for (int i = static_cast<int>(blockIdx.x) * kStepWarps + c.warp;
         i < c.pass.n_rows * shape.n_kv_heads; i += static_cast<int>(gridDim.x) * kStepWarps) {
        const int column = i / shape.n_kv_heads;
        const int row = c.row_of(column);
        const int kv_head = i % shape.n_kv_heads;
        store_any_row(shape, layer, c.args.buffers.heads + column * width,
                      work.of(shape, row, column, kv_head), kv_head, c.own(c.pass.rows)[row].stored,
                      c.lane);
    }
}

// The factors of norms of whole rows of queries and of keys: a block has one.
__device__ __forceinline__ void norm_heads(const StepContext& c) {
    for (int i = static_cast<int>(blockIdx.x); i < 2 * c.pass.n_rows;
         i += static_cast<int>(gridDim.x)) {
        give_head_factor(c.args.shape, c.args.buffers, i / 2, i % 2, c.factors(), c.thread,
                         sync_warps);
    }
}

}  // namespace knap
