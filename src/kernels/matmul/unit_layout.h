// Byte offsets of the parts of a unit (see packed_matrix.h), and how its numbers encode weights:
// weight = scale * (code - kOffset), or scale * code + minimum.
#pragma once

#include "kernels/matmul/packed_matrix.h"

namespace knap {

inline constexpr int kQuadBytes = 4 * kGroupRows;    // four inputs of every row
inline constexpr int kHalvesBytes = 2 * kGroupRows;  // an f16 of every row

// `HeaderBytes` of scales, then blocks of 32 inputs of `Bits` bits.
template <int Inputs, int Bits, int HeaderBytes>
struct BlockedUnit {
    static constexpr int kInputs = Inputs;  // per unit
    static constexpr int kBlocks = Inputs / kQuantBlock;
    static constexpr bool kIsBytes = Bits == 8;
    static constexpr int kHighBits = kIsBytes ? 0 : Bits - 4;
    static constexpr int kLowBytes = (kIsBytes ? 8 : 4) * kQuadBytes;
    static constexpr int kBlockBytes = kLowBytes + kHighBits * kQuadBytes;
    static constexpr int kBytes = HeaderBytes + kBlocks * kBlockBytes;

    static constexpr int low(int block) { return HeaderBytes + block * kBlockBytes; }
    static constexpr int high(int block) { return low(block) + kLowBytes; }
};

template <ggml_type Type>
struct UnitLayout;

template <>
struct UnitLayout<GGML_TYPE_Q4_0> : BlockedUnit<32, 4, kHalvesBytes> {
    static constexpr int kOffset = 8;
};
template <>
struct UnitLayout<GGML_TYPE_Q4_1> : BlockedUnit<32, 4, 2 * kHalvesBytes> {
    static constexpr int kOffset = 0;
    static constexpr int kMinima = kHalvesBytes;
};
template <>
struct UnitLayout<GGML_TYPE_Q5_0> : BlockedUnit<32, 5, kHalvesBytes> {
    static constexpr int kOffset = 16;
};
template <>
struct UnitLayout<GGML_TYPE_Q5_1> : BlockedUnit<32, 5, 2 * kHalvesBytes> {
    static constexpr int kOffset = 0;
    static constexpr int kMinima = kHalvesBytes;
};
template <>
struct UnitLayout<GGML_TYPE_Q8_0> : BlockedUnit<32, 8, kHalvesBytes> {
    static constexpr int kOffset = 128;
};

template <int Bits>
struct SuperBlockUnit
    : BlockedUnit<256, Bits, 2 * kHalvesBytes + 2 * static_cast<int>(sizeof(SixBits))> {
    static constexpr int kOffset = 0;
    static constexpr int kMinima = kHalvesBytes;
    static constexpr int kSubScales = 2 * kHalvesBytes;
    static constexpr int kSubMinima = kSubScales + static_cast<int>(sizeof(SixBits));
};
template <>
struct UnitLayout<GGML_TYPE_Q4_K> : SuperBlockUnit<4> {};
template <>
struct UnitLayout<GGML_TYPE_Q5_K> : SuperBlockUnit<5> {};
template <>
struct UnitLayout<GGML_TYPE_Q6_K> : BlockedUnit<256, 6, kHalvesBytes + 16 * kGroupRows> {
    static constexpr int kOffset = 32;
    static constexpr int kSubScales = kHalvesBytes;  // i8 [16 inputs each][32 rows]
};

}  // namespace knap
