// The kernel of a product: a block of four warps computes a tile of eight strips and 64 columns. A
// warp has two strips and all columns of the tile.
//
// Every sum is that of the step kernel: `sums` of the units w, w + 8, ... are what warp w has
// there, and they are added to the totals in the order of w. Totals rest in shared memory in
// between.
#pragma once

#include <algorithm>

#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/prefill/prefill_stage.cuh"
#include "kernels/cuda/step_product.cuh"

namespace knap {

inline constexpr int kProductWarps = 4;
inline constexpr int kProductThreads = 32 * kProductWarps;
inline constexpr int kWarpStrips = kTileStrips / kProductWarps;
inline constexpr int kColumnTiles = kTileColumns / 8;
inline constexpr int kMaxStages = 4;
// Floats between columns of the finished totals: lanes that write fragments meet no bank twice.
inline constexpr int kTotalStride = kTileStrips * kStripRows + 4;

// The shared memory: barriers, totals, stages.
inline constexpr int kTotalsAt = 128;
inline constexpr int kStagesAt = kTotalsAt + kTileColumns * kTotalStride * 4;
static_assert(2 * kMaxStages * 8 <= kTotalsAt && kStagesAt % 128 == 0);

// Blocks of the largest GPUs' multiprocessors that run at once.
template <int Type>
inline constexpr int kProductBlocks = takes_halves(static_cast<ggml_type>(Type)) ? 2 : 3;

// Rows g and g + 8 of a warp's strips, columns 2 q and 2 q + 1 of each eight.
using TileSums = float[kWarpStrips][kColumnTiles][4];

__host__ __device__ inline int count_row_tiles(const CudaPhase& phase, int type) {
    const auto tiles = [](int n_strips, int n_at_once) {
        return (n_strips + n_at_once - 1) / n_at_once;
    };
    switch (phase.op) {
        case CudaPhase::Op::gate:
            return tiles(phase.parts[0].n_strips, kTileStrips / 2);
        case CudaPhase::Op::heads: {
            int n = 0;
            for (const CudaMatrix& part : phase.parts) {
                n += part.type == type ? tiles(part.n_strips, kTileStrips) : 0;
            }
            return n;
        }
        default:
            return tiles(phase.parts[0].n_strips, kTileStrips);
    }
}

// Eight strips of a matrix. Those of `gate` are two strips of gate, the same two of up, and the
// next two of each.
struct RowTile {
    int part = 0;    // of the phase
    int index = 0;   // of the tile in its matrix
    int offset = 0;  // of the matrix in the rows of all parts

    __device__ RowTile(const CudaPhase& phase, int type, int tile) : index(tile) {
        if (phase.op != CudaPhase::Op::heads) {
            return;
        }
        for (part = 0; part < 3; ++part) {
            const CudaMatrix& matrix = phase.parts[part];
            const int n = (matrix.n_strips + kTileStrips - 1) / kTileStrips;
            if (matrix.type == type) {
                if (index < n) {
                    return;
                }
                index -= n;
            }
            offset += matrix.n_strips * kStripRows;
        }
    }

    // The first unit of strip `k`. Beyond the matrix it is its last strip, for nobody to use.
    __device__ const std::uint8_t* strip(const CudaPhase& phase, int k) const {
        const bool is_gate = phase.op == CudaPhase::Op::gate;
        const CudaMatrix& matrix = phase.parts[is_gate ? k / 2 % 2 : part];
        const int at = is_gate ? 4 * index + k / 4 * 2 + k % 2 : kTileStrips * index + k;
        const int unit_bytes = strip_unit(static_cast<ggml_type>(matrix.type)).n_bytes;
        return matrix.strips + static_cast<std::size_t>(min(at, matrix.n_strips - 1)) *
                                   static_cast<std::size_t>(matrix.n_units) *
                                   static_cast<std::size_t>(unit_bytes);
    }
};

// Scales of a strip for 64 inputs. Those of Q6_K are of 16 inputs each, times one of the row.
template <int Type>
struct StagedScales {
    unit::RowScales rows;

    __device__ void load(const std::uint8_t* at, int part, int lane) {
        unit::load_scales_from<Type>(at, part, lane, rows);
    }
};

template <>
struct StagedScales<GGML_TYPE_Q6_K> {
    float d[2];           // [row]
    float of16[2][2][2];  // [block][row][half of the block]

    __device__ void load(const std::uint8_t* at, int part, int lane) {
        const int g = lane / 4;
        const std::uint32_t both = *reinterpret_cast<const std::uint32_t*>(at + 256 + g * 4);
        d[0] = unit::half_to_float(both & 0xFFFF);
        d[1] = unit::half_to_float(both >> 16);
        const uint2 words = *reinterpret_cast<const uint2*>(at + part * 64 + g * 8);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const std::uint32_t word = i < 4 ? words.x : words.y;
            of16[i % 4 / 2][i / 4][i % 2] =
                static_cast<float>(static_cast<std::int8_t>(word >> (i % 4 * 8) & 255));
        }
    }
};

// Adds the products of a block of 32 inputs to the sums of a strip and eight columns: the same
// roundings as multiply_unit(). `by` has scale and scaled sum of columns 2 q and 2 q + 1.
template <int Type>
__device__ __forceinline__ void multiply_block(const std::uint32_t (&a)[4],
                                               std::uint32_t b0,
                                               std::uint32_t b1,
                                               const StagedScales<Type>& scales,
                                               int block,
                                               const float4& by,
                                               const int (&magic)[4],
                                               float (&sums)[4]) {
    int c[4];
    if constexpr (Type == GGML_TYPE_Q6_K) {
        int second[4];
        mma_s8_half_onto(c, a[0], a[1], b0, magic);
        mma_s8_half_onto(second, a[2], a[3], b1, magic);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            // Exact: multiples of four below 2^25, and their sum below 2^26.
            const float(&of)[2] = scales.of16[block][i / 2];
            const float exact = __fmaf_rn(__int_as_float(second[i]) - unit::kMagic, of[1],
                                          __fmul_rn(__int_as_float(c[i]) - unit::kMagic, of[0]));
            const float scale = __fmul_rn(scales.d[i / 2], i % 2 == 0 ? by.x : by.z);
            sums[i] = __fmaf_rn(exact, scale, sums[i]);
        }
    } else {
        mma_s8_onto<unit::kIsSigned<Type>>(c, a, b0, b1, magic);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float exact = __int_as_float(c[i]) - unit::kMagic;
            const float scale = __fmul_rn(scales.rows.d[block][i / 2], i % 2 == 0 ? by.x : by.z);
            sums[i] = __fmaf_rn(exact, scale, sums[i]);
            if constexpr (unit::kHasMinima<Type>) {
                sums[i] = __fmaf_rn(scales.rows.m[block][i / 2], i % 2 == 0 ? by.y : by.w, sums[i]);
            }
        }
    }
}

// Adds the products of a stage to a warp's sums.
template <int Type>
__device__ __forceinline__ void multiply_stage(const std::uint8_t* stage,
                                               int part,
                                               int warp,
                                               int lane,
                                               const int (&magic)[4],
                                               TileSums& sums) {
    using Sizes = StageSizes<Type>;
    const int g = lane / 4;
    const int q = lane % 4;
    std::uint32_t a[kWarpStrips][2][4];
    StagedScales<Type> scales[kWarpStrips];
#pragma unroll
    for (int k = 0; k < kWarpStrips; ++k) {
        const std::uint8_t* strip = stage + (warp * kWarpStrips + k) * Sizes::kStrip;
        unit::load_codes_from<Type>(strip, strip + Sizes::kLow, lane, a[k]);
        scales[k].load(strip + Sizes::kLow + Sizes::kHigh, part, lane);
    }
    const std::uint8_t* codes = stage + Sizes::kInputs + g * 64 + q * 16;
    const std::uint8_t* inputs_scales = stage + Sizes::kInputs + Sizes::kCodes + q * 16;
#pragma unroll
    for (int tile = 0; tile < kColumnTiles; ++tile) {
        const uint4 b = load_shared16(codes + tile * 8 * 64);
#pragma unroll
        for (int block = 0; block < 2; ++block) {
            const float4 by = *reinterpret_cast<const float4*>(
                inputs_scales + block * Sizes::kInputScales + tile * 8 * 8);
#pragma unroll
            for (int k = 0; k < kWarpStrips; ++k) {
                multiply_block<Type>(a[k][block], block == 0 ? b.x : b.z, block == 0 ? b.y : b.w,
                                     scales[k], block, by, magic, sums[k][tile]);
            }
        }
    }
}

// Where 16-bit inputs 2 `pair` and the next of 64 of a column are, counted in pairs: those of a
// step of the tensor cores are together, 16 bytes each for a lane's first two and its last two, so
// that eight columns are read at once without meeting a bank twice.
__device__ __forceinline__ int halves_place(int pair, int column) {
    return (pair % 8 ^ column % 8) * 4 + pair / 8;
}

// The same for F16 and BF16, where the tensor cores round: as multiply_halves().
template <int Type>
__device__ __forceinline__ void multiply_halves_stage(const std::uint8_t* stage,
                                                      int warp,
                                                      int lane,
                                                      TileSums& sums) {
    using Sizes = StageSizes<Type>;
    uint4 a[kWarpStrips][4];
#pragma unroll
    for (int k = 0; k < kWarpStrips; ++k) {
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            a[k][step] = load_shared16(stage + (warp * kWarpStrips + k) * Sizes::kStrip +
                                       step * 512 + lane * 16);
        }
    }
    const int row = lane % 8;
#pragma unroll
    for (int tile = 0; tile < kColumnTiles; ++tile) {
        const std::uint8_t* at = stage + Sizes::kInputs + (8 * tile + row) * 128;
        std::uint32_t b[2][4];
        load_matrices(b[0], at + (lane / 8 ^ row) * 16);
        load_matrices(b[1], at + (4 + lane / 8 ^ row) * 16);
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const std::uint32_t b0 = b[step / 2][step % 2 * 2];
            const std::uint32_t b1 = b[step / 2][step % 2 * 2 + 1];
#pragma unroll
            for (int k = 0; k < kWarpStrips; ++k) {
                const uint4& x = a[k][step];
                if constexpr (Type == GGML_TYPE_F16) {
                    mma_f16(sums[k][tile], x.x, x.y, x.z, x.w, b0, b1);
                } else {
                    mma_bf16(sums[k][tile], x.x, x.y, x.z, x.w, b0, b1);
                }
            }
        }
    }
}

// Adds the sums to the totals, which a thread keeps in places of its own, and begins them anew. The
// last totals stay in `sums`.
__device__ __forceinline__ void add_to_totals(
    float4* totals, int thread, bool is_first, bool is_last, TileSums& sums) {
#pragma unroll
    for (int k = 0; k < kWarpStrips; ++k) {
#pragma unroll
        for (int tile = 0; tile < kColumnTiles; ++tile) {
            float4& place = totals[(k * kColumnTiles + tile) * kProductThreads + thread];
            const float4 before = is_first ? make_float4(0, 0, 0, 0) : place;
            float(&sum)[4] = sums[k][tile];
            sum[0] = __fadd_rn(before.x, sum[0]);
            sum[1] = __fadd_rn(before.y, sum[1]);
            sum[2] = __fadd_rn(before.z, sum[2]);
            sum[3] = __fadd_rn(before.w, sum[3]);
            if (!is_last) {
                place = make_float4(sum[0], sum[1], sum[2], sum[3]);
                sum[0] = sum[1] = sum[2] = sum[3] = 0;
            }
        }
    }
}

// Spreads the totals as [column][kTotalStride], for any warp to read. They take the place of those
// of add_to_totals(): all threads must be done with it.
template <int Type>
__device__ __forceinline__ void spread_totals(float* totals,
                                              int warp,
                                              int lane,
                                              const TileSums& sums) {
    const int g = lane / 4;
    const int q = lane % 4;
#pragma unroll
    for (int k = 0; k < kWarpStrips; ++k) {
#pragma unroll
        for (int tile = 0; tile < kColumnTiles; ++tile) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = (warp * kWarpStrips + k) * kStripRows + g + 8 * (i / 2);
                totals[(8 * tile + 2 * q + i % 2) * kTotalStride + row] =
                    sums[k][tile][i] * unit::code_scale(Type);
            }
        }
    }
}

// What becomes of a tile's totals. A lane has one of 32 consecutive rows.
struct TileEpilogue {
    const ProductArguments& args;
    const float* totals;
    RowTile tile;
    int first_column;
    int warp;
    int lane;

    __device__ int n_columns() const { return min(kTileColumns, args.n_columns - first_column); }
    __device__ float total(int column, int row) const {
        return totals[column * kTotalStride + row];
    }
    __device__ float factor(int column) const {
        if (args.factors == nullptr) {
            return 1.0f;
        }
        const int at = first_column + column;
        return __ldg(args.factors + (args.rows_of != nullptr ? __ldg(args.rows_of + at) : at));
    }
    __device__ int first_row() const { return (tile.index * kProductWarps + warp) * 32; }

    __device__ void finish() const {
        switch (args.phase.op) {
            case CudaPhase::Op::heads:
                give_heads();
                break;
            case CudaPhase::Op::add:
                add_to_stream();
                break;
            case CudaPhase::Op::result:
                give_results();
                break;
            case CudaPhase::Op::gate:
                gate();
                break;
            default:
                give_logits();
                break;
        }
    }

    // Rows of a matrix to columns of floats, after finish(number).
    template <typename Finish>
    __device__ void give(
        float* to, std::size_t width, int n_rows, const float* bias, Finish finish) const {
        const int row = first_row() + lane;
        if (row >= n_rows) {
            return;
        }
#pragma unroll 4
        for (int column = 0; column < n_columns(); ++column) {
            to[static_cast<std::size_t>(first_column + column) * width +
               static_cast<std::size_t>(row)] =
                finish(with_bias(total(column, warp * 32 + lane), factor(column), bias, row));
        }
    }

    __device__ void give_heads() const {
        const CudaMatrix& matrix = args.phase.parts[tile.part];
        give(args.buffers.heads + tile.offset,
             static_cast<std::size_t>(args.shape.n_q() + 2 * args.shape.n_kv()),
             matrix.n_strips * kStripRows, matrix.bias, [](float x) { return x; });
    }

    __device__ void give_logits() const {
        give(args.buffers.logits, static_cast<std::size_t>(args.shape.n_vocab), args.shape.n_vocab,
             args.phase.parts[0].bias,
             [&](float logit) { return finished_logit(logit, args.shape); });
    }

    __device__ void give_results() const {
        const int n_embd = args.shape.n_embd;
        const int first = first_row();
        if (first >= n_embd) {
            return;
        }
        for (int column = 0; column < n_columns(); ++column) {
            const int at = first_column + column;
            const float x = with_bias(total(column, warp * 32 + lane), 1.0f,
                                      args.phase.parts[0].bias, first + lane);
            args.buffers.results[static_cast<std::size_t>(at) * static_cast<std::size_t>(n_embd) +
                                 static_cast<std::size_t>(first + lane)] = x;
            give_square(x, args.buffers.result_squares, args.stride, first, at, lane);
        }
    }

    __device__ void add_to_stream() const {
        const int n_embd = args.shape.n_embd;
        const StreamWriter writer = stream_writer(args.buffers, args.phase, args.stride, n_embd);
        const int first = first_row();
        if (first >= n_embd) {
            return;
        }
        constexpr int kAtOnce = 8;  // to have several loads under way
        const auto at = [&](int column) {
            return args.buffers.stream +
                   static_cast<std::size_t>(first_column + column) *
                       static_cast<std::size_t>(n_embd) +
                   static_cast<std::size_t>(first + lane);
        };
        for (int begin = 0; begin < n_columns(); begin += kAtOnce) {
            const int n = min(kAtOnce, n_columns() - begin);
            float before[kAtOnce];
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                before[i] = i < n ? __ldcg(at(begin + i)) : 0.0f;
            }
#pragma unroll
            for (int i = 0; i < kAtOnce; ++i) {
                if (i < n) {
                    const float result = with_bias(total(begin + i, warp * 32 + lane), 1.0f,
                                                   args.phase.parts[0].bias, first + lane);
                    const float x =
                        __fadd_rn(before[i], __fmul_rn(result, args.shape.residual_scale));
                    *at(begin + i) = x;
                    writer.write(x, first, first_column + begin + i, lane);
                }
            }
        }
    }

    // Warps 0 and 1 have the first 32 rows, 2 and 3 the second, and half of the columns each.
    __device__ void gate() const {
        const InputWriter writer =
            input_writer(args.buffers, 1, args.stride, args.shape.n_ff, args.phase.gives_halves);
        const int half = warp / 2;
        const int first = tile.index * 64 + half * 32;
        if (first >= args.shape.n_ff) {
            return;
        }
#pragma unroll 2
        for (int column = warp % 2; column < n_columns(); column += 2) {
            const float by = factor(column);
            const float gated = with_bias(total(column, half * 64 + lane), by,
                                          args.phase.parts[0].bias, first + lane);
            const float up = with_bias(total(column, half * 64 + 32 + lane), by,
                                       args.phase.parts[1].bias, first + lane);
            writer.write(activated(gated, args.shape.activation) * up, first, first_column + column,
                         lane);
        }
    }
};

// Stage s is in slot s % n_stages. All warps read it when `full` says so and then arrive at
// `empty`. A slot is filled again one step later, when most likely all have read it, by one warp:
// they take turns, because copies cost a warp instructions.
template <int Type>
__global__ void __launch_bounds__(kProductThreads, kProductBlocks<Type>)
    product_kernel(const __grid_constant__ ProductArguments args) {
    using Sizes = StageSizes<Type>;
    extern __shared__ __align__(128) std::uint8_t shared[];
    auto* full = reinterpret_cast<std::uint64_t*>(shared);
    std::uint64_t* empty = full + kMaxStages;
    auto* totals = reinterpret_cast<float*>(shared + kTotalsAt);
    std::uint8_t* stages = shared + kStagesAt;
    const int thread = static_cast<int>(threadIdx.x);
    const int warp = thread / 32;
    const int lane = thread % 32;
    const int n_column_tiles = (args.n_columns + kTileColumns - 1) / kTileColumns;
    // Blocks that run together share weights.
    const int first_column = static_cast<int>(blockIdx.x) % n_column_tiles * kTileColumns;
    const RowTile tile(args.phase, Type, static_cast<int>(blockIdx.x) / n_column_tiles);
    const int n_units = args.phase.parts[tile.part].n_units;
    const int n_steps = n_units * Sizes::kParts;
    if (thread == 0) {
        for (int i = 0; i < args.n_stages; ++i) {
            init_barrier(full + i, kStageArrivals);
            init_barrier(empty + i, kProductWarps);
        }
        announce_barriers();
    }
    __syncthreads();

    Stager<Type> stager{
        tile.strip(args.phase, lane % kTileStrips),
        args.inputs + static_cast<std::size_t>(first_column) * (Sizes::kCodes / kTileColumns),
        reinterpret_cast<const std::uint8_t*>(args.scales) +
            static_cast<std::size_t>(first_column) * 8,
        static_cast<std::size_t>(args.stride),
        {n_units}};
    for (int s = 0; s < min(args.n_stages, n_steps); ++s) {
        if (warp == s % kProductWarps) {
            stager.copy(stages + s * Sizes::kBytes, full + s, lane);
        }
        stager.walk.advance();
    }

    TileSums sums = {};
    const int magic[4] = {unit::kMagicBits, unit::kMagicBits, unit::kMagicBits, unit::kMagicBits};
    UnitWalk<Sizes::kParts> walk{n_units};
    RingPosition ring{};    // of the stage to read
    RingPosition filled{};  // of the slot to fill again, with the parity of its readers
    bool is_first = true;
    for (int s = 0; s < n_steps; ++s) {
        wait_for(full + ring.slot, ring.parity);
        const std::uint8_t* stage = stages + ring.slot * Sizes::kBytes;
        if constexpr (Sizes::kIsHalves) {
            multiply_halves_stage<Type>(stage, warp, lane, sums);
        } else {
            multiply_stage<Type>(stage, walk.part, warp, lane, magic, sums);
        }
        __syncwarp();
        if (lane == 0) {
            arrive(empty + ring.slot);
        }
        ring.advance(args.n_stages);
        if (walk.advance()) {
            add_to_totals(reinterpret_cast<float4*>(totals), thread, is_first, s == n_steps - 1,
                          sums);
            is_first = false;
        }
        if (s > 0 && s - 1 + args.n_stages < n_steps) {
            if (warp == s % kProductWarps) {
                wait_for(empty + filled.slot, filled.parity);
                __syncwarp();
                stager.copy(stages + filled.slot * Sizes::kBytes, full + filled.slot, lane);
            }
            stager.walk.advance();
            filled.advance(args.n_stages);
        }
    }
    __syncthreads();
    spread_totals<Type>(totals, warp, lane, sums);
    __syncthreads();
    TileEpilogue{args, totals, tile, first_column, warp, lane}.finish();
}

// Starts the kernel of one type. Shared memory is divided so that kProductBlocks fit.
template <int Type>
void start_product_of(const CudaDevice& device, ProductArguments args, cudaStream_t stream) {
    using Sizes = StageSizes<Type>;
    constexpr std::size_t kProcessorBytes = 228 * 1024;  // a block takes 1 KB more than it asks for
    const std::size_t room =
        std::min(device.shared_bytes, kProcessorBytes / kProductBlocks<Type> - 1024);
    args.n_stages = std::min(kMaxStages, (static_cast<int>(room) - kStagesAt) / Sizes::kBytes);
    static_assert(kStagesAt + 2 * Sizes::kBytes <= 99 * 1024);
    const auto n_bytes = static_cast<std::size_t>(kStagesAt + args.n_stages * Sizes::kBytes);
    allow_shared_memory<product_kernel<Type>>(n_bytes);
    const int n_column_tiles = (args.n_columns + kTileColumns - 1) / kTileColumns;
    const int n_tiles = count_row_tiles(args.phase, Type) * n_column_tiles;
    product_kernel<Type>
        <<<static_cast<unsigned>(n_tiles), kProductThreads, n_bytes, stream>>>(args);
    check_cuda(cudaGetLastError(), "starting a product");
}

}  // namespace knap
