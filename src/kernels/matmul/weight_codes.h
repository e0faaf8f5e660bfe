// Loads the numbers of a unit into vectors: codes of four inputs, scales and minima of many rows.
#pragma once

#include <type_traits>

#include "kernels/matmul/unit_layout.h"

namespace knap {
namespace {

// The numbers of a SixBits as bytes.
struct SixBitRows {
    explicit SixBitRows(const SixBits& bits) {
        for (int b = 0; b < 4; ++b) {
            for (int row = 0; row < kGroupRows; ++row) {
                values[b][row] = static_cast<std::int8_t>((bits.low[b][row] & 15) |
                                                          (bits.high[0][row] >> 2 * b & 3) << 4);
                values[b + 4][row] = static_cast<std::int8_t>(
                    bits.low[b][row] >> 4 | (bits.high[1][row] >> 2 * b & 3) << 4);
            }
        }
    }

    std::int8_t values[8][kGroupRows];
};

template <typename Simd, ggml_type Type>
struct WeightCodes {
    using Layout = UnitLayout<Type>;
    using Vector = typename Simd::Vector;
    using Ints = typename Simd::Ints;
    using Bytes = typename Simd::Bytes;

    static constexpr bool kIsSuperBlock = Type == GGML_TYPE_Q4_K || Type == GGML_TYPE_Q5_K;
    static constexpr bool kHasMinima =
        Type == GGML_TYPE_Q4_1 || Type == GGML_TYPE_Q5_1 || kIsSuperBlock;
    // Scales per 32 inputs: one, or one for each half.
    static constexpr int kHalves =
        Type == GGML_TYPE_Q2_K || Type == GGML_TYPE_Q3_K || Type == GGML_TYPE_Q6_K ? 2 : 1;
    static constexpr bool kHasHalfMinima = Type == GGML_TYPE_Q2_K;
    static constexpr bool kHasCodebook = requires { Layout::kCodebook; };
    // Codes of up to eight bits: 128 + w for signed weights w. Others are below 64.
    static constexpr bool kHasByteCodes = Layout::kOffset == 128;
    // log2 of the offset that dots must start from, or 0 when there is none.
    static constexpr int kOffsetBits = [] {
        const int offset = kHasByteCodes && !Simd::kDotsOffsetBytes ? 0 : Layout::kOffset;
        int bits = 0;
        while (1 << bits < offset) {
            ++bits;
        }
        return bits;
    }();

    // Codes of inputs 4 Quad to 4 Quad + 3 in the first and in the second half of a block.
    struct Pair {
        Bytes first;
        Bytes second;
    };

    template <int Quad>
    [[gnu::always_inline]] static Pair load(const std::byte* unit, int block, int row) {
        if constexpr (Layout::kIsBytes) {
            const std::byte* low = codes_of(unit, block) + Quad * kQuadBytes + row * 4;
            return {Simd::load_bytes(low), Simd::load_bytes(low + 4 * kQuadBytes)};
        }
        Pair codes = load_low<Quad>(codes_of(unit, block) + row * 4);
        if constexpr (kHasCodebook) {
            const auto table = Simd::load_table(Layout::kCodebook.data());
            codes = {Simd::look_up(table, codes.first), Simd::look_up(table, codes.second)};
        }
        if constexpr (Layout::kHighBits == 1) {
            const Bytes high = Simd::load_bytes(unit + Layout::high(block) + row * 4);
            constexpr int kBit = Layout::kLowBits;
            codes.first = Simd::template merge_bits<kBit - Quad, 1 << kBit>(codes.first, high);
            codes.second =
                Simd::template merge_bits<kBit - 4 - Quad, 1 << kBit>(codes.second, high);
        }
        if constexpr (Layout::kHighBits == 2) {
            const std::byte* high = unit + Layout::high(block) + row * 4;
            codes.first =
                Simd::template merge_bits<4 - 2 * Quad, 48>(codes.first, Simd::load_bytes(high));
            codes.second = Simd::template merge_bits<4 - 2 * Quad, 48>(
                codes.second, Simd::load_bytes(high + kQuadBytes));
        }
        return codes;
    }

    [[gnu::always_inline]] static void add(const Pair& codes,
                                           Bytes first,
                                           Bytes second,
                                           Ints (&dots)[kHalves]) {
        if constexpr (kHalves == 2) {
            dots[0] = Simd::dot(dots[0], codes.first, first);
            dots[1] = Simd::dot(dots[1], codes.second, second);
        } else if constexpr (kHasByteCodes) {
            dots[0] = Simd::dot_bytes(dots[0], codes.first, first);
            dots[0] = Simd::dot_bytes(dots[0], codes.second, second);
        } else {
            dots[0] = Simd::dot_pair(dots[0], codes.first, first, codes.second, second);
        }
    }

    [[gnu::always_inline]] static Vector scale(const std::byte* unit,
                                               int block,
                                               int half,
                                               int row) {
        if constexpr (Type == GGML_TYPE_MXFP4) {
            return Simd::load_exponents(
                reinterpret_cast<const std::uint8_t*>(Layout::exponents(unit)) + row);
        }
        const Vector d = halves(unit, row);
        if constexpr (Type == GGML_TYPE_Q6_K) {
            const auto* scales = reinterpret_cast<const std::int8_t*>(unit + Layout::kSubScales);
            return Simd::multiply(
                d, Simd::load_signed_bytes(scales + (2 * block + half) * kGroupRows + row));
        } else if constexpr (kIsSuperBlock) {
            return Simd::multiply(d, six_bits(unit + Layout::kSubScales, block, row));
        } else if constexpr (Type == GGML_TYPE_Q2_K) {
            return Simd::multiply(d, four_bits(unit, block, half, row, 0));
        } else if constexpr (Type == GGML_TYPE_Q3_K || Type == GGML_TYPE_IQ4_XS) {
            const std::byte* scales =
                unit + Layout::kSubScales + half * static_cast<int>(sizeof(SixBits));
            return Simd::multiply(d, Simd::subtract(six_bits(scales, block, row),
                                                    Simd::broadcast(SixBits::kSignedOffset)));
        } else {
            return d;
        }
    }

    // The number that the sum of the inputs is multiplied by.
    [[gnu::always_inline]] static Vector minimum(const std::byte* unit,
                                                 int block,
                                                 int row) requires kHasMinima {
        if constexpr (kIsSuperBlock) {
            return Simd::multiply(minus_minimum(unit, row),
                                  six_bits(unit + Layout::kSubMinima, block, row));
        } else {
            return halves(unit + Layout::kMinima, row);
        }
    }

    // The number that minus the sum of the inputs of a half is multiplied by.
    [[gnu::always_inline]] static Vector half_minimum(const std::byte* unit,
                                                      int block,
                                                      int half,
                                                      int row) requires kHasHalfMinima {
        return Simd::multiply(halves(unit + Layout::kMinima, row),
                              four_bits(unit, block, half, row, 4));
    }

    // The same scales and minima for whole units: the six-bit numbers are unpacked for all rows at
    // once.
    struct StoredScales {
        explicit StoredScales(const std::byte* unit_) : unit(unit_) {}
        Vector scale(int block, int half, int row) const {
            return WeightCodes::scale(unit, block, half, row);
        }
        Vector minimum(int block, int row) const { return WeightCodes::minimum(unit, block, row); }

        const std::byte* unit;
    };
    struct SuperBlockScales {
        explicit SuperBlockScales(const std::byte* unit_)
            : unit(unit_),
              scales(*reinterpret_cast<const SixBits*>(unit + Layout::kSubScales)),
              minima(*reinterpret_cast<const SixBits*>(unit + Layout::kSubMinima)) {}
        Vector scale(int block, int /*half*/, int row) const {
            return Simd::multiply(halves(unit, row),
                                  Simd::load_signed_bytes(scales.values[block] + row));
        }
        Vector minimum(int block, int row) const {
            return Simd::multiply(minus_minimum(unit, row),
                                  Simd::load_signed_bytes(minima.values[block] + row));
        }

        const std::byte* unit;
        SixBitRows scales;
        SixBitRows minima;
    };
    using Scales = std::conditional_t<kIsSuperBlock, SuperBlockScales, StoredScales>;

  private:
    // The low bits of the codes of a quad; `rows` are those of quad 0.
    template <int Quad>
    [[gnu::always_inline]] static Pair load_low(const std::byte* rows) {
        if constexpr (Layout::kLowBits == 2) {
            return {Simd::template take_bits<2 * Quad, 3>(Simd::load_bytes(rows)),
                    Simd::template take_bits<2 * Quad, 3>(Simd::load_bytes(rows + kQuadBytes))};
        } else {
            const Bytes nibbles = Simd::load_bytes(rows + Quad * kQuadBytes);
            return {Simd::low_nibbles(nibbles), Simd::high_nibbles(nibbles)};
        }
    }

    [[gnu::always_inline]] static const std::byte* codes_of(const std::byte* unit, int block) {
        if constexpr (Type == GGML_TYPE_MXFP4) {
            return Layout::codes(unit);
        } else {
            return unit + Layout::low(block);
        }
    }

    [[gnu::always_inline]] static Vector halves(const std::byte* bytes, int row) {
        return Simd::load_half(reinterpret_cast<const std::uint16_t*>(bytes) + row);
    }

    [[gnu::always_inline]] static Vector four_bits(
        const std::byte* unit, int block, int half, int row, int shift) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(unit + Layout::kSubScales);
        return Simd::load_four_bits(bytes + (2 * block + half) * kGroupRows + row, shift);
    }

    [[gnu::always_inline]] static Vector minus_minimum(const std::byte* unit, int row) {
        const Vector m = halves(unit + Layout::kMinima, row);
        return Simd::multiply(m, Simd::broadcast(-1.0f));
    }

    [[gnu::always_inline]] static Vector six_bits(const std::byte* bytes, int block, int row) {
        const auto& bits = *reinterpret_cast<const SixBits*>(bytes);
        return Simd::load_six_bits(bits.low[block % 4] + row, block / 4 * 4,
                                   bits.high[block / 4] + row, block % 4 * 2);
    }
};

}  // namespace
}  // namespace knap
