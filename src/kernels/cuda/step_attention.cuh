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
                                 int index,
                                 AttentionItem& item) {
    for (int i = 0; i < attention.n_blocks; ++i) {
        const CudaBlock& block = c.own(attention.blocks)[i];
        const int end = end_part(c, attention, block);
        const int n = (end - block.first_part) * c.args.shape.n_kv_heads;
        if (index < n) {
            item = {i, end - 1 - index / c.args.shape.n_kv_heads, index % c.args.shape.n_kv_heads};
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
    const int n_merging = kStepThreads / shape.head_dim * static_cast<int>(gridDim.x);
#pragma unroll 1
    for (int i = index * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x);
         i < c.pass.n_rows * shape.n_heads; i += n_merging) {
        const int row = i / shape.n_heads;
        const int first_part =
            attention.first_seen != nullptr ? part_of(first_seen_by(c, attention, row)) : 0;
        merge_parts(c, phase, first_part, parts_of(c, attention, row), row, i % shape.n_heads,
                    index, stride);
    }
}

// What attention has in the region: queries, of each warp 16 keys and 16 values, and what the
// warps' states are merged by. The states themselves take the places of keys and values.
template <int HeadDim, int Groups>
struct AttentionRegion {
    static constexpr int kColumns = 16 * Groups;
    static constexpr int kTile = kAttentionStep16 * HeadDim;  // numbers
    static constexpr int kTiles = kColumns * HeadDim * 2;
    static constexpr int kFactors = kTiles + kStepWarps * 2 * kTile * 2;
    static constexpr int kTops =
        kFactors + kStepWarps * kColumns * static_cast<int>(sizeof(MergeFactors));
    static constexpr int kWeights = kTops + kStepWarps * kColumns * 4;
    static constexpr int kBytes = kWeights + kStepWarps * kColumns * 4;
    static_assert(8 * Places<HeadDim>::kSumStride * 4 <= 2 * kTile * 2);
    static_assert(kStepThreads / HeadDim * kMaxMergedParts * 5 * 4 <= kBytes);
};

inline int attention_bytes(int head_dim, int n_columns) {
    if (head_dim == 64) {
        return n_columns <= 16 ? AttentionRegion<64, 1>::kBytes : AttentionRegion<64, 2>::kBytes;
    }
    return n_columns <= 16 ? AttentionRegion<128, 1>::kBytes : AttentionRegion<128, 2>::kBytes;
}

// A warp's way through its positions, 16 at a time. It copies the next keys when it is done with
// those it has, and the next values likewise.
template <int HeadDim>
struct TileCopies {
    using At = Places<HeadDim>;

    CudaLayer layer;
    PositionMap map;
    std::uint16_t* keys;
    std::uint16_t* values;
    int last;  // positions beyond it are copies of it, which nobody sees
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
        offset = page_offset + static_cast<std::size_t>(row % kCudaPageRows * HeadDim);
    }

    template <bool IsKeys>
    __device__ __forceinline__ void copy() const {
        constexpr int kRows = 32 / At::kPieces;  // that lanes copy at once
        constexpr int kCopies = kAttentionStep16 / kRows;
        const std::uint16_t* cache = IsKeys ? layer.keys : layer.values;
        std::uint16_t* to = IsKeys ? keys : values;
        int place = lane;
        forget(place);
        const int row = place / At::kPieces;
        const int piece = place % At::kPieces;
        const auto place_of = [&](int i) {
            return IsKeys ? At::key(kRows * i + row, piece) : At::value(kRows * i + row, piece);
        };
        if (is_whole && last - first >= kAttentionStep16 - 1) {
            const std::uint16_t* from = cache + offset + place * 8;
#pragma unroll
            for (int i = 0; i < kCopies; ++i) {
                copy16_async(to + place_of(i), from + i * kRows * HeadDim);
            }
        } else {
#pragma unroll 1
            for (int i = 0; i < kCopies; ++i) {
                const int seen = min(kRows * i + row, last - first);
                const std::size_t from = is_whole
                                             ? offset + static_cast<std::size_t>(seen * HeadDim)
                                             : map.at(first + seen);
                copy16_async(to + place_of(i), cache + from + piece * 8);
            }
        }
        end_copy_group();
    }

    __device__ __forceinline__ void copy_both() const {
        copy<true>();
        copy<false>();
    }
};

// Positions [begin, end) of a part, whose first 16 are being copied. change(scores, first) does
// what the model wants with the scores of the positions from `first` on, up to `end_changed`.
template <int HeadDim, int Groups, typename Change>
__device__ __forceinline__ void attend_to(WarpAttention<HeadDim, Groups>& warp,
                                          TileCopies<HeadDim>& tiles,
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
        warp.score(queries, tiles.keys, lane, scores);
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
            warp.weigh(scores[group][0], group, first, n_seen[group], lane);
        }
        wait_copy_groups<1>();
        __syncwarp();
        warp.add_values(tiles.values, 0, scores, 0, lane);
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

template <int HeadDim, int Groups>
__device__ __forceinline__ void attend(const StepContext& c,
                                       const CudaPhase& phase,
                                       const CudaAttention& attention,
                                       const AttentionItem& item,
                                       int stride) {
    using Region = AttentionRegion<HeadDim, Groups>;
    using At = Places<HeadDim>;
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
        reinterpret_cast<std::uint16_t*>(c.region() + Region::kTiles) + c.warp * 2 * Region::kTile;
    TileCopies<HeadDim> tiles{
        layer, position_map(shape, c.pass.pages, c.own(attention.runs), block, item.kv_head),
        tile,  tile + Region::kTile,
        last,  c.lane};
    const auto load_head = [&](int column) {
        HeadPairs head;
        head.load(shape, c.args.buffers.heads + row_at(column) * width + head_at(column) * HeadDim,
                  c.lane);
        return head;
    };
    HeadPairs next = load_head(min(c.warp, n_columns - 1));
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
            store_row(shape, layer, c.args.buffers.heads + column * width,
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
            for (int i = c.lane; i < HeadDim; i += 32) {
                to[column * HeadDim + i] = __float2half_rn(0.0f);
            }
            continue;
        }
        const HeadPairs head = next;
        next = load_head(min(column + kStepWarps, n_columns - 1));
        const int row = c.row_of(row_at(column));
        const float own_scale =
            shape.scales_queries ? __fmul_rn(scale, c.own(c.pass.rows)[row].query_scale) : scale;
        turn_head(shape, head, work.of(shape, row, row_at(column), head_at(column)), c.lane,
                  [&](int channel, float x) {
                      to[At::key(column, channel / 8) + channel % 8] =
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
        constexpr int kChannels = HeadDim / 32;  // of a lane
        const float* state = states + c.warp * At::kSumStride + kChannels * c.lane;
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
                numbers[i] = by.merge(numbers[i], state[w * Region::kTile + i]);
            }
        }
        const int row = row_at(column);
        const int head = head_at(column);
        if (attention.merges) {
            float* partial = partials_of(c, row, head) + item.part * (HeadDim + 2);
#pragma unroll
            for (int i = 0; i < kChannels; ++i) {
                partial[kChannels * c.lane + i] = numbers[i];
            }
            if (c.lane == 0) {
                partial[HeadDim] = most;
                partial[HeadDim + 1] = weight;
            }
        } else {
#pragma unroll
            for (float& x : numbers) {
                x = x / weight;
            }
            input_writer(c.args.buffers, 1, stride, shape.n_q(), phase.gives_halves)
                .write_all(numbers, head * HeadDim, row, c.lane);
        }
    }
    sync_warps();  // before the next item writes what this one read
}

template <int HeadDim, int Columns>
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
        if (!find_item(c, attention, index, item)) {
            break;
        }
        if constexpr (Columns == 1) {
            attend<HeadDim, 1>(c, phase, attention, item, Columns);
        } else {
            const int n_columns = c.own(attention.blocks)[item.block].n_rows *
                                  (c.args.shape.n_heads / c.args.shape.n_kv_heads);
            if (n_columns <= 16) {
                attend<HeadDim, 1>(c, phase, attention, item, Columns);
            } else {
                attend<HeadDim, 2>(c, phase, attention, item, Columns);
            }
        }
    }
    if (attention.merges) {
        c.wait_for_blocks();
        merge_heads(c, phase, attention, Columns);
    }
}

template <int Columns>
__device__ __forceinline__ void run_attention(StepContext& c, const CudaPhase& phase) {
    if (c.args.shape.head_dim == 64) {
        run_attention_of<64, Columns>(c, phase);
    } else {
        run_attention_of<128, Columns>(c, phase);
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
        store_row(shape, layer, c.args.buffers.heads + column * width,
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
