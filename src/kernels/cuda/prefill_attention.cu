// A warp has 16 columns (query heads of rows that share a KV head) and walks over all positions
// that they see, 32 at a time, which the warps of a block bring to shared memory together.
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
#include "kernels/cuda/prefill_attention.h"

namespace knap {
namespace {

constexpr int kAttentionTile = 32;   // positions that are brought together
constexpr int kAttentionStages = 3;  // tiles in shared memory
constexpr int kWarpColumns = 16;
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

// The shared memory: tiles of keys and values, then of each warp its queries and its totals.
template <int HeadDim>
struct AttentionMemory {
    static constexpr int kTile = kAttentionTile * HeadDim;  // numbers
    static constexpr int kTiles = kAttentionStages * 2 * kTile * 2;
    static constexpr int kQueries = kWarpColumns * HeadDim * 2;
    static constexpr int kTotals = kWarpColumns * Places<HeadDim>::kSumStride * 4;

    static constexpr std::size_t bytes(int n_warps) {
        return static_cast<std::size_t>(kTiles + n_warps * (kQueries + kTotals));
    }
};

// The columns of a warp.
template <int HeadDim>
struct ColumnAttention {
    using Warp = WarpAttention<HeadDim, 1>;
    using At = Places<HeadDim>;

    Warp share;
    float part[HeadDim / 8][4];
    float part_most[2];
    float part_weight[2];
    float total_most[2];
    float total_weight[2];
    const std::uint16_t* queries;
    float* totals;      // [16][kSumStride]; a lane has places of its own until the end
    int n_seen[2];      // of columns g and g + 8
    int first_seen[2];  // likewise
    float soft_cap;     // of scores; 0: none
    int end_changed;    // scores of positions up to here are capped, or some are hidden
    int lane;

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
        share.clear();
        clear_part();
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            total_most[row] = -INFINITY;
            total_weight[row] = 0;
#pragma unroll
            for (int tile = 0; tile < HeadDim / 8; ++tile) {
                *total(row, tile) = make_float2(0, 0);
            }
        }
    }

    __device__ float2* total(int row, int tile) const {
        return reinterpret_cast<float2*>(totals + (8 * row + lane / 4) * At::kSumStride + 8 * tile +
                                         lane % 4 * 2);
    }

    // The share is complete.
    __device__ void end_share() {
        share.add_lanes();
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const MergeFactors by(part_most[row], share.most[0][row]);
            part_most[row] = by.most;
            part_weight[row] = by.merge(part_weight[row], share.weight[0][row]);
#pragma unroll
            for (int tile = 0; tile < HeadDim / 8; ++tile) {
#pragma unroll
                for (int i = 2 * row; i < 2 * row + 2; ++i) {
                    part[tile][i] = by.merge(part[tile][i], share.out[0][tile][i]);
                }
            }
        }
        share.clear();
    }

    __device__ void end_part() {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const MergeFactors by(total_most[row], part_most[row]);
            total_most[row] = by.most;
            total_weight[row] = by.merge(total_weight[row], part_weight[row]);
#pragma unroll
            for (int tile = 0; tile < HeadDim / 8; ++tile) {
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

    // The 32 positions from `first` on. Some column sees the first of them, and none sees more than
    // `most_seen`.
    __device__ void run(const std::uint16_t* keys,
                        const std::uint16_t* values,
                        int first,
                        int most_seen) {
        float scores[1][2][2][4];
        Warp::score(queries, keys, lane, scores);
        if (first < end_changed) [[unlikely]] {
            change(scores, first);
        }
#pragma unroll
        for (int step = 0; step < 2; ++step) {
            const int at = first + kAttentionStep16 * step;
            if (at < most_seen) {
                share.weigh(scores[0][step], 0, at, n_seen, lane);
                share.add_values(values, kAttentionStep16 * step, scores, step, lane);
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

// A warp's queries, from column `first` on.
template <int HeadDim>
__device__ void load_queries(const AttentionArguments& args,
                             const ColumnTile& tile,
                             int first,
                             std::uint16_t* queries,
                             int lane) {
    using At = Places<HeadDim>;
    const CudaShape& shape = args.shape;
    const auto width = static_cast<std::size_t>(shape.n_q() + 2 * shape.n_kv());
    constexpr float kLog2e = 1.44269504088896f;
    const float scale = shape.attention_scale * kLog2e;
    auto* to = reinterpret_cast<__half*>(queries);
    const HeadsWork work(shape, args.pass, shape.layers[args.layer], HeadKind::query,
                         args.pass.turns, args.buffers.head_factors);
    for (int i = 0; i < kWarpColumns; ++i) {
        const int column = first + i;
        if (column >= tile.n_columns) {
            for (int channel = lane; channel < HeadDim; channel += 32) {
                to[At::key(i, channel / 8) + channel % 8] = __float2half_rn(0.0f);
            }
            continue;
        }
        const int row = tile.row(column);
        HeadPairs head;
        head.load(shape,
                  args.buffers.heads + static_cast<std::size_t>(row) * width +
                      tile.head(column) * HeadDim,
                  lane);
        const float own_scale = shape.scales_queries
                                    ? __fmul_rn(scale, __ldg(&args.pass.rows[row].query_scale))
                                    : scale;
        turn_head(shape, head, work.of(shape, row, row, tile.head(column)), lane,
                  [&](int channel, float x) {
                      to[At::key(i, channel / 8) + channel % 8] = __float2half_rn(x * own_scale);
                  });
    }
}

// All threads of the block begin to copy the 32 positions from `first` on; those beyond `last` are
// copies of it, which nobody sees.
template <int HeadDim>
__device__ __forceinline__ void copy_tile(const CudaLayer& layer,
                                          const PositionMap& map,
                                          int first,
                                          int last,
                                          std::uint16_t* keys,
                                          std::uint16_t* values) {
    using At = Places<HeadDim>;
    const int piece = static_cast<int>(threadIdx.x) % At::kPieces;
    for (int i = static_cast<int>(threadIdx.x) / At::kPieces; i < kAttentionTile;
         i += static_cast<int>(blockDim.x) / At::kPieces) {
        const std::size_t from = map.at(min(first + i, last)) + static_cast<std::size_t>(8 * piece);
        copy16_async(keys + At::key(i, piece), layer.keys + from);
        copy16_async(values + At::value(i, piece), layer.values + from);
    }
}

// A warp gives its columns to the product that follows.
template <int HeadDim>
__device__ void give_columns(const AttentionArguments& args,
                             const ColumnTile& tile,
                             int first,
                             const float* totals,
                             int lane) {
    const InputWriter writer =
        input_writer(args.buffers, 1, args.stride, args.shape.n_q(), args.gives_halves);
    for (int i = 0; i < min(kWarpColumns, tile.n_columns - first); ++i) {
        const float* of = totals + i * Places<HeadDim>::kSumStride;
        const float weight = of[HeadDim];
#pragma unroll
        for (int block = 0; block < HeadDim / 32; ++block) {
            writer.write(of[32 * block + lane] / weight,
                         tile.head(first + i) * HeadDim + 32 * block, tile.row(first + i), lane);
        }
    }
}

// Blocks of threads: [block of rows][16 columns for each warp, the last first][KV head]. The last
// rows see most.
template <int HeadDim>
__global__ void __launch_bounds__(32 * kMaxAttentionWarps, 1)
    attention_kernel(const __grid_constant__ AttentionArguments args) {
    using Memory = AttentionMemory<HeadDim>;
    extern __shared__ __align__(128) std::uint8_t shared[];
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int n_warps = static_cast<int>(blockDim.x) / 32;
    const int n_kv = args.shape.n_kv_heads;
    const int index = static_cast<int>(gridDim.x - 1 - blockIdx.x);
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

    auto* tiles = reinterpret_cast<std::uint16_t*>(shared);
    std::uint8_t* own = shared + Memory::kTiles + warp * (Memory::kQueries + Memory::kTotals);
    auto* queries = reinterpret_cast<std::uint16_t*>(own);
    auto* totals = reinterpret_cast<float*>(own + Memory::kQueries);
    const CudaLayer& layer = args.shape.layers[args.layer];
    const PositionMap map =
        position_map(args.shape, args.pass.pages, args.pass.attentions[args.group].runs, tile.block,
                     tile.kv_head);
    const int first_tile = lowest / kAttentionTile;
    const int n_tiles = last / kAttentionTile + 1;
    const auto begin_copy = [&](int t) {
        if (t < n_tiles) {
            std::uint16_t* to = tiles + t % kAttentionStages * 2 * Memory::kTile;
            copy_tile<HeadDim>(layer, map, t * kAttentionTile, last, to, to + Memory::kTile);
        }
        end_copy_group();
    };
#pragma unroll
    for (int t = 0; t < kAttentionStages - 1; ++t) {
        begin_copy(first_tile + t);
    }
    load_queries<HeadDim>(args, tile, own_column, queries, lane);

    ColumnAttention<HeadDim> columns;
    columns.queries = queries;
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
    const int most_seen = __reduce_max_sync(~0u, max(columns.n_seen[0], columns.n_seen[1]));
    columns.clear();
    for (int t = first_tile; t < n_tiles; ++t) {
        // Tile t has arrived, and all warps are done with t - 1, whose place t + 2 takes.
        wait_copy_groups<kAttentionStages - 2>();
        __syncthreads();
        begin_copy(t + kAttentionStages - 1);
        const std::uint16_t* keys = tiles + t % kAttentionStages * 2 * Memory::kTile;
        if (t * kAttentionTile < most_seen) {
            columns.run(keys, keys + Memory::kTile, t * kAttentionTile, most_seen);
        }
    }
    columns.end_share();
    columns.end_part();
    if (lane % 4 == 0) {
        totals[lane / 4 * Places<HeadDim>::kSumStride + HeadDim] = columns.total_weight[0];
        totals[(8 + lane / 4) * Places<HeadDim>::kSumStride + HeadDim] = columns.total_weight[1];
    }
    __syncwarp();
    give_columns<HeadDim>(args, tile, own_column, totals, lane);
}

// As many warps to a block as there is room for, but rather fewer than idle multiprocessors.
template <int HeadDim>
void start_attention_of(const CudaDevice& device,
                        const AttentionArguments& args,
                        std::span<const CudaBlock> blocks,
                        cudaStream_t stream) {
    using Memory = AttentionMemory<HeadDim>;
    static const bool is_ready = [&] {
        const std::size_t most = std::min(device.shared_bytes, Memory::bytes(kMaxAttentionWarps));
        check_cuda(cudaFuncSetAttribute(attention_kernel<HeadDim>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(most)),
                   "preparing a kernel");
        check_cuda(cudaFuncSetAttribute(attention_kernel<HeadDim>,
                                        cudaFuncAttributePreferredSharedMemoryCarveout,
                                        cudaSharedmemCarveoutMaxShared),
                   "preparing a kernel");
        return true;
    }();
    static_cast<void>(is_ready);
    const int per_kv = args.shape.n_heads / args.shape.n_kv_heads;
    const auto count = [&](int n_rows, int n_warps) {
        const int n = n_warps * kWarpColumns;
        return (n_rows * per_kv + n - 1) / n;
    };
    const auto count_all = [&](int n_warps) {
        int n = 0;
        for (const CudaBlock& block : blocks) {
            n += count(block.n_rows, n_warps) * args.shape.n_kv_heads;
        }
        return n;
    };
    int n_warps = kMaxAttentionWarps;
    while (n_warps > 2 && (Memory::bytes(n_warps) > device.shared_bytes ||
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
    const dim3 grid(static_cast<unsigned>(n_tiles * args.shape.n_kv_heads),
                    static_cast<unsigned>(blocks.size()));
    attention_kernel<HeadDim>
        <<<grid, static_cast<unsigned>(32 * n_warps), Memory::bytes(n_warps), stream>>>(args);
    check_cuda(cudaGetLastError(), "starting attention");
}

}  // namespace

void start_attention(const CudaDevice& device,
                     const AttentionArguments& arguments,
                     std::span<const CudaBlock> blocks,
                     cudaStream_t stream) {
    if (arguments.shape.head_dim == 64) {
        start_attention_of<64>(device, arguments, blocks, stream);
    } else {
        start_attention_of<128>(device, arguments, blocks, stream);
    }
}

}  // namespace knap
