// Byte offsets of the parts of a unit (see packed_matrix.h), and how its numbers encode weights:
// weight = scale * (code - kOffset), or scale * code + minimum. For types with a codebook the code
// is the entry at the stored index.
#pragma once

#include <array>

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
    static constexpr int kLowBits = kIsBytes ? 8 : Bits < 4 ? 2 : 4;
    static constexpr int kHighBits = Bits - kLowBits;
    static constexpr int kLowBytes = kLowBits * kQuadBytes;
    static constexpr int kBlockBytes = kLowBytes + kHighBits * kQuadBytes;
    static constexpr int kBytes = HeaderBytes + kBlocks * kBlockBytes;

    static constexpr int low(int block) { return HeaderBytes + block * kBlockBytes; }
    static constexpr int high(int block) { return low(block) + kLowBytes; }
};

using Codebook = std::array<std::uint8_t, 16>;

// The numbers of IQ4_NL and IQ4_XS, plus 128.
inline constexpr Codebook kIq4Codebook{128 - 127, 128 - 104, 128 - 83, 128 - 65, 128 - 49, 128 - 35,
                                       128 - 22,  128 - 10,  128 + 1,  128 + 13, 128 + 25, 128 + 38,
                                       128 + 53,  128 + 69,  128 + 89, 128 + 113};

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

template <>
struct UnitLayout<GGML_TYPE_IQ4_NL> : BlockedUnit<32, 4, kHalvesBytes> {
    static constexpr int kOffset = 128;
    static constexpr Codebook kCodebook = kIq4Codebook;
};

// An exponent of each row instead of an f16. A unit is 17 halves of a cache line: one that starts
// in the middle of a line has its exponents first, others have them last. So the codes are always
// aligned.
template <>
struct UnitLayout<GGML_TYPE_MXFP4> : BlockedUnit<32, 4, kGroupRows> {
    static constexpr int kOffset = 16;
    static constexpr Codebook kCodebook{16,     16 + 1,  16 + 2, 16 + 3, 16 + 4, 16 + 6,
                                        16 + 8, 16 + 12, 16,     16 - 1, 16 - 2, 16 - 3,
                                        16 - 4, 16 - 6,  16 - 8, 16 - 12};

    template <typename Byte>
    static Byte* codes(Byte* unit) {
        return starts_a_line(unit) ? unit : unit + kGroupRows;
    }
    template <typename Byte>
    static Byte* exponents(Byte* unit) {
        return starts_a_line(unit) ? unit + kLowBytes : unit;
    }

  private:
    static bool starts_a_line(const std::byte* unit) {
        return reinterpret_cast<std::uintptr_t>(unit) % kPackedAlignment == 0;
    }
};

template <>
struct UnitLayout<GGML_TYPE_Q2_K> : BlockedUnit<256, 2, 2 * kHalvesBytes + 16 * kGroupRows> {
    static constexpr int kOffset = 0;
    static constexpr int kMinima = kHalvesBytes;
    // u8 [16 inputs each][32 rows]: the scale in the low nibble, the minimum in the high one.
    static constexpr int kSubScales = 2 * kHalvesBytes;
};
template <>
struct UnitLayout<GGML_TYPE_Q3_K>
    : BlockedUnit<256, 3, kHalvesBytes + 2 * static_cast<int>(sizeof(SixBits))> {
    static constexpr int kOffset = 4;
    static constexpr int kSubScales = kHalvesBytes;  // of the first halves, then of the second
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
template <>
struct UnitLayout<GGML_TYPE_IQ4_XS>
    : BlockedUnit<256, 4, kHalvesBytes + static_cast<int>(sizeof(SixBits))> {
    static constexpr int kOffset = 128;
    static constexpr Codebook kCodebook = kIq4Codebook;
    static constexpr int kSubScales = kHalvesBytes;
};

}  // namespace knap
