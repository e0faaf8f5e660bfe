// Products with F16 and BF16 on GPUs of compute capability 9.0: a block of threads computes a tile
// of eight strips and 128 columns. Eight warps multiply, four at once; another copies.
//
// Every sum is that of the step kernel, as in prefill_product.cuh. Totals stay in registers.
#pragma once

#include "base/rounding.h"
#include "kernels/cuda/mma_group.cuh"
#include "kernels/cuda/prefill/prefill_product.cuh"

namespace knap {

struct HalvesTile {
    static constexpr int kColumns = 128;
    static constexpr int kMultiplying = 8;  // warps
    static constexpr int kThreads =
        32 * (kMultiplying + 4);  // the copying warp has a group for itself
    static constexpr int kUnit = strip_unit(GGML_TYPE_F16).n_bytes;
    static constexpr int kStrips = kTileStrips * kUnit;  // bytes of a stage
    static constexpr int kInputs = kColumns * 128;
    static constexpr int kStage = kStrips + kInputs;
    static constexpr int kStages = 6;
    static constexpr int kBarriersAt = kStages * kStage;
    static constexpr int kBytes = kBarriersAt + 2 * kStages * 8;
    static_assert(kColumns * kTotalStride * 4 <= kBarriersAt);
};

#if KNAP_HAS_GROUP_PRODUCTS
__device__ __forceinline__ void copy_halves(const ProductArguments& args,
                                            const RowTile& tile,
                                            int first_column,
                                            int n_units,
                                            std::uint8_t* stages,
                                            std::uint64_t* full,
                                            std::uint64_t* empty,
                                            int lane) {
    using Tile = HalvesTile;
    const std::uint8_t* strip = tile.strip(args.phase, lane % kTileStrips);
    RingPosition ring{};
    UnitWalk<1> walk{n_units};
    for (int i = 0; i < n_units; ++i) {
        wait_for(empty + ring.slot, ring.parity ^ 1);
        std::uint8_t* stage = stages + ring.slot * Tile::kStage;
        std::uint64_t* barrier = full + ring.slot;
        if (lane == 0) {
            expect_bytes(barrier, Tile::kStage);
        }
        __syncwarp();
        if (lane < kTileStrips) {
            copy_bulk(stage + lane * Tile::kUnit,
                      strip + static_cast<std::size_t>(walk.unit) * Tile::kUnit, Tile::kUnit,
                      barrier);
        } else if (lane == kTileStrips) {
            const std::size_t column =
                static_cast<std::size_t>(walk.unit) * static_cast<std::size_t>(args.stride) +
                static_cast<std::size_t>(first_column);
            copy_bulk(stage + Tile::kStrips, args.inputs + column * 128, Tile::kInputs, barrier);
        }
        ring.advance(Tile::kStages);
        walk.advance();
    }
}

// Of the eight warps that multiply.
__device__ __forceinline__ void sync_multiplying() {
    asm volatile("bar.sync 1, %0;" ::"n"(32 * HalvesTile::kMultiplying) : "memory");
}

template <int Type>
__device__ __forceinline__ void multiply_halves_tile(const ProductArguments& args,
                                                     const RowTile& tile,
                                                     int first_column,
                                                     int n_units,
                                                     std::uint8_t* stages,
                                                     std::uint64_t* full,
                                                     std::uint64_t* empty,
                                                     int warp,
                                                     int lane) {
    using Tile = HalvesTile;
    float sums[16][4];
    float totals[16][4];
    RingPosition ring{};
    for (int w = 0; w < kStepWarps; ++w) {
        bool adds = false;
        for (int unit = w; unit < n_units; unit += kStepWarps) {
            wait_for(full + ring.slot, ring.parity);
            const std::uint8_t* stage = stages + ring.slot * Tile::kStage;
            uint4 a[4];
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                a[step] = load_shared16(stage + warp * Tile::kUnit + step * 512 + lane * 16);
            }
            begin_group_products();
            const std::uint64_t columns = describe_columns(stage + Tile::kStrips);
#pragma unroll
            for (int step = 0; step < 4; ++step) {
                multiply_group<Type == GGML_TYPE_BF16>(sums, a[step], columns, step, adds);
                adds = true;
            }
            finish_group_products();
            if (lane == 0) {
                arrive(empty + ring.slot);
            }
            ring.advance(Tile::kStages);
        }
#pragma unroll
        for (int i = 0; i < 64; ++i) {
            float& total = totals[i / 4][i % 4];
            total = __fadd_rn(w == 0 ? 0.0f : total, adds ? sums[i / 4][i % 4] : 0.0f);
        }
    }
    // All stages have arrived and were read.
    sync_multiplying();
    auto* spread = reinterpret_cast<float*>(stages);
    const int row = warp * kStripRows + lane / 4;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        const int column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
        spread[column * kTotalStride + row + 8 * (i % 4 / 2)] = totals[i / 4][i % 4];
    }
    sync_multiplying();
    const int half = warp / kProductWarps * kTileColumns;
    TileEpilogue{
        args, spread + half * kTotalStride, tile, first_column + half, warp % kProductWarps, lane}
        .finish();
}
#endif

template <int Type>
__global__ void __launch_bounds__(HalvesTile::kThreads, 1)
    halves_kernel(const __grid_constant__ ProductArguments args) {
#if KNAP_HAS_GROUP_PRODUCTS
    using Tile = HalvesTile;
    extern __shared__ __align__(1024) std::uint8_t halves_shared[];
    auto* full = reinterpret_cast<std::uint64_t*>(halves_shared + Tile::kBarriersAt);
    std::uint64_t* empty = full + Tile::kStages;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int n_column_tiles = (args.n_columns + Tile::kColumns - 1) / Tile::kColumns;
    const int first_column = static_cast<int>(blockIdx.x) % n_column_tiles * Tile::kColumns;
    const RowTile tile(args.phase, Type, static_cast<int>(blockIdx.x) / n_column_tiles);
    const int n_units = args.phase.parts[tile.part].n_units;
    if (threadIdx.x == 0) {
        for (int i = 0; i < Tile::kStages; ++i) {
            init_barrier(full + i, 1);
            init_barrier(empty + i, Tile::kMultiplying);
        }
        announce_barriers();
    }
    __syncthreads();
    if (warp >= Tile::kMultiplying) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (warp == Tile::kMultiplying) {
            copy_halves(args, tile, first_column, n_units, halves_shared, full, empty, lane);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply_halves_tile<Type>(args, tile, first_column, n_units, halves_shared, full, empty,
                                   warp, lane);
    }
#endif
}

// Whether this build has the kernel for the device.
template <int Type>
bool has_halves_kernel(const CudaDevice& device) {
    static const bool is_compiled = [] {
        cudaFuncAttributes attributes{};
        check_cuda(cudaFuncGetAttributes(&attributes, halves_kernel<Type>), "finding a kernel");
        return attributes.numRegs > 100;  // else it is empty
    }();
    return device.capability == 90 && is_compiled &&
           device.shared_bytes >= static_cast<std::size_t>(HalvesTile::kBytes);
}

template <int Type>
void start_halves(const ProductArguments& args, cudaStream_t stream) {
    allow_shared_memory<halves_kernel<Type>>(HalvesTile::kBytes);
    const int n_tiles =
        count_row_tiles(args.phase, Type) * steps_for(args.n_columns, HalvesTile::kColumns);
    halves_kernel<Type>
        <<<static_cast<unsigned>(n_tiles), HalvesTile::kThreads, HalvesTile::kBytes, stream>>>(
            args);
    check_cuda(cudaGetLastError(), "starting a product");
}

}  // namespace knap
