// Weights and inputs on their way to shared memory, in a ring of stages. A stage is what a tile
// needs of 64 inputs: of each of its eight strips the low bits, the high bits and the scales, then
// the inputs of its columns.
#pragma once

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/prefill/prefill_product.h"
#include "kernels/cuda/step_context.cuh"
#include "kernels/cuda/units.cuh"

namespace knap {

// Sizes of a stage. What is here of units of 256 inputs is a quarter of their codes, and all of
// their scales.
template <int Type>
struct StageSizes {
    static constexpr StripUnit kUnit = strip_unit(static_cast<ggml_type>(Type));
    static constexpr bool kIsHalves = takes_halves(static_cast<ggml_type>(Type));
    static constexpr int kParts = kUnit.n_inputs / 64;
    static constexpr int kLow = kIsHalves ? 2048 : unit::kLowBytes<Type>;
    static constexpr int kHigh = kIsHalves ? 0 : unit::kHighBytes<Type>;
    static constexpr int kScales = kParts == 1              ? kUnit.n_bytes - kLow - kHigh
                                   : Type == GGML_TYPE_Q6_K ? 256 + 32
                                                            : 256;
    static constexpr int kStrip = kLow + kHigh + kScales;
    static constexpr int kCodes = kTileColumns * (kIsHalves ? 128 : 64);
    static constexpr int kInputScales = kIsHalves ? 0 : kTileColumns * 8;  // of 32 inputs
    static constexpr int kInputs = kTileStrips * kStrip;                   // where they begin
    static constexpr int kBytes = kInputs + kCodes + 2 * kInputScales;

    // Pieces of contiguous memory.
    static constexpr int kStripPieces = kParts == 1 ? 1 : Type == GGML_TYPE_Q4_K ? 2 : 3;
    static constexpr int kPieces = kTileStrips * kStripPieces + (kIsHalves ? 1 : 3);
};

// The order in which products are summed: units w, w + 8, ... for each w in turn, as the warps of
// the step kernel take them, and the parts of a unit in order.
template <int Parts>
struct UnitWalk {
    int n_units;
    int unit = 0;
    int part = 0;

    // Whether that was the last of those of a warp. After the very last of all, the walk is over.
    __device__ bool advance() {
        if (++part < Parts) {
            return false;
        }
        part = 0;
        unit += kStepWarps;
        if (unit < n_units) {
            return false;
        }
        unit = unit % kStepWarps + 1;
        return true;
    }
};

struct CopyPiece {
    const std::uint8_t* from;
    int to;  // in the stage
    int n_bytes;
};

// A piece of a strip; `to` counts from the strip's place.
template <int Type>
__device__ __forceinline__ CopyPiece strip_piece(const std::uint8_t* unit, int part, int piece) {
    using Sizes = StageSizes<Type>;
    if constexpr (Sizes::kParts == 1) {
        return {unit, 0, Sizes::kStrip};
    } else {
        constexpr int kHighs = Sizes::kParts * Sizes::kLow;
        constexpr int kScales = Sizes::kParts * (Sizes::kLow + Sizes::kHigh);
        if (piece == 0) {
            return {unit + part * Sizes::kLow, 0, Sizes::kLow};
        }
        if (Sizes::kHigh > 0 && piece == 1) {
            return {unit + kHighs + part * Sizes::kHigh, Sizes::kLow, Sizes::kHigh};
        }
        return {unit + kScales, Sizes::kLow + Sizes::kHigh, Sizes::kScales};
    }
}

// Copies stage after stage, each by one warp. All warps walk along.
template <int Type>
struct Stager {
    using Sizes = StageSizes<Type>;

    const std::uint8_t* strip;   // lane i: strip i % 8 of the tile
    const std::uint8_t* inputs;  // of the tile's first column
    const std::uint8_t* scales;
    std::size_t stride;  // columns in memory
    UnitWalk<Sizes::kParts> walk;

    __device__ CopyPiece piece(int i, const std::uint8_t* own_strip) const {
        if (i < kTileStrips * Sizes::kStripPieces) {
            CopyPiece copy = strip_piece<Type>(
                own_strip + static_cast<std::size_t>(walk.unit) * Sizes::kUnit.n_bytes, walk.part,
                i / kTileStrips);
            copy.to += i % kTileStrips * Sizes::kStrip;
            return copy;
        }
        const auto first = static_cast<std::size_t>(walk.unit * Sizes::kParts + walk.part);
        const int k = i - kTileStrips * Sizes::kStripPieces;
        if (k == 0) {
            return {inputs + first * stride * (Sizes::kCodes / kTileColumns), Sizes::kInputs,
                    Sizes::kCodes};
        }
        return {scales + (2 * first + static_cast<std::size_t>(k - 1)) * stride * 8,
                Sizes::kInputs + Sizes::kCodes + (k - 1) * Sizes::kInputScales,
                Sizes::kInputScales};
    }

    // The barrier completes its phase when all of the stage is there.
    __device__ void copy(std::uint8_t* stage, std::uint64_t* barrier, int lane) const {
#if __CUDA_ARCH__ >= 900
        if (lane == 0) {
            expect_bytes(barrier, Sizes::kBytes);
        }
        __syncwarp();
#pragma unroll
        for (int i = lane; i < Sizes::kPieces; i += 32) {
            const CopyPiece copy = piece(i, strip);
            copy_bulk(stage + copy.to, copy.from, copy.n_bytes, barrier);
        }
#else
        for (int i = 0; i < Sizes::kPieces; ++i) {
            const auto own =
                __shfl_sync(~0u, reinterpret_cast<unsigned long long>(strip), i % kTileStrips);
            const CopyPiece copy = piece(i, reinterpret_cast<const std::uint8_t*>(own));
            for (int at = lane * 16; at < copy.n_bytes; at += 32 * 16) {
                copy16_async(stage + copy.to + at, copy.from + at);
            }
        }
        arrive_after_copies(barrier);
#endif
    }
};

}  // namespace knap
