#include "kernels/matmul/packed_matrix.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "kernels/matmul/unit_layout.h"

namespace knap {
namespace {

constexpr int kSuperBlock = 256;  // inputs per block of the K types

// Blocks as ggml stores them in a file.
struct StoredQ4_0 {
    std::uint16_t d;
    std::uint8_t nibbles[16];
};
struct StoredQ4_1 {
    std::uint16_t d;
    std::uint16_t m;
    std::uint8_t nibbles[16];
};
struct StoredQ5_0 {
    std::uint16_t d;
    std::uint8_t high[4];
    std::uint8_t nibbles[16];
};
struct StoredQ5_1 {
    std::uint16_t d;
    std::uint16_t m;
    std::uint8_t high[4];
    std::uint8_t nibbles[16];
};
struct StoredMXFP4 {
    std::uint8_t exponent;
    std::uint8_t nibbles[16];
};
struct StoredQ8_0 {
    std::uint16_t d;
    std::int8_t values[kQuantBlock];
};
struct StoredQ2_K {
    std::uint8_t scales[kSuperBlock / 16];
    std::uint8_t pairs[kSuperBlock / 4];
    std::uint16_t d;
    std::uint16_t dmin;
};
struct StoredQ3_K {
    std::uint8_t high[kSuperBlock / 8];
    std::uint8_t pairs[kSuperBlock / 4];
    std::uint8_t scales[12];
    std::uint16_t d;
};
struct StoredQ4_K {
    std::uint16_t d;
    std::uint16_t dmin;
    std::uint8_t scales[12];
    std::uint8_t nibbles[kSuperBlock / 2];
};
struct StoredQ5_K {
    std::uint16_t d;
    std::uint16_t dmin;
    std::uint8_t scales[12];
    std::uint8_t high[kSuperBlock / 8];
    std::uint8_t nibbles[kSuperBlock / 2];
};
struct StoredQ6_K {
    std::uint8_t low[kSuperBlock / 2];
    std::uint8_t high[kSuperBlock / 4];
    std::int8_t scales[kSuperBlock / 16];
    std::uint16_t d;
};

struct StoredIQ4_XS {
    std::uint16_t d;
    std::uint16_t scales_high;
    std::uint8_t scales_low[4];
    std::uint8_t nibbles[kSuperBlock / 2];
};

using Codes = std::array<std::uint8_t, kQuantBlock>;  // unsigned weights of 32 inputs

void split_nibbles(const std::uint8_t* nibbles, Codes& codes) {
    for (std::size_t i = 0; i < 16; ++i) {
        codes[i] = nibbles[i] & 0x0fU;
        codes[i + 16] = nibbles[i] >> 4U;
    }
}

// Bit i of the four bytes is the fifth bit of input i.
void add_fifth_bits(const std::uint8_t* high, Codes& codes) {
    for (std::size_t i = 0; i < kQuantBlock; ++i) {
        codes[i] |= (high[i / 8] >> i % 8 & 1U) << 4U;
    }
}

std::byte& byte_at(std::byte* rows, std::size_t quad, int row, std::size_t t) {
    return rows[(quad * kGroupRows + static_cast<std::size_t>(row)) * 4 + t];
}

void put_nibbles(const Codes& codes, int row, std::byte* rows) {
    for (std::size_t quad = 0; quad < 4; ++quad) {
        for (std::size_t t = 0; t < 4; ++t) {
            byte_at(rows, quad, row, t) =
                std::byte((codes[4 * quad + t] & 0x0fU) | (codes[16 + 4 * quad + t] & 0x0fU) << 4U);
        }
    }
}

// Bits `shift` and `shift` + 1 of every code.
void put_pairs(const Codes& codes, unsigned shift, int row, std::byte* rows) {
    for (std::size_t half = 0; half < 2; ++half) {
        for (std::size_t t = 0; t < 4; ++t) {
            unsigned bits = 0;
            for (std::size_t quad = 0; quad < 4; ++quad) {
                bits |= (codes[16 * half + 4 * quad + t] >> shift & 3U) << 2 * quad;
            }
            byte_at(rows, half, row, t) = std::byte(bits);
        }
    }
}

// Bit `shift` of every code.
void put_bits(const Codes& codes, unsigned shift, int row, std::byte* rows) {
    for (std::size_t t = 0; t < 4; ++t) {
        unsigned bits = 0;
        for (std::size_t quad = 0; quad < 8; ++quad) {
            bits |= (codes[4 * quad + t] >> shift & 1U) << quad;
        }
        byte_at(rows, 0, row, t) = std::byte(bits);
    }
}

// Writes the codes of 32 inputs of row `row`. `rows` are the block's.
template <typename Layout>
void put_codes(const Codes& codes, int row, std::byte* rows) {
    if constexpr (Layout::kLowBits == 2) {
        put_pairs(codes, 0, row, rows);
    } else {
        put_nibbles(codes, row, rows);
    }
    if constexpr (Layout::kHighBits == 1) {
        put_bits(codes, Layout::kLowBits, row, rows + Layout::kLowBytes);
    } else if constexpr (Layout::kHighBits == 2) {
        put_pairs(codes, Layout::kLowBits, row, rows + Layout::kLowBytes);
    }
}

void put_half(std::byte* halves, int row, std::uint16_t value) {
    std::memcpy(halves + std::ptrdiff_t{row} * 2, &value, sizeof value);
}

// Also IQ4_NL: the same bytes, but the nibbles are indices.
void pack(const StoredQ4_0& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q4_0>;
    Codes codes;
    split_nibbles(block.nibbles, codes);
    put_half(unit, row, block.d);
    put_codes<Layout>(codes, row, unit + Layout::low(0));
}

void pack(const StoredQ4_1& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q4_1>;
    Codes codes;
    split_nibbles(block.nibbles, codes);
    put_half(unit, row, block.d);
    put_half(unit + Layout::kMinima, row, block.m);
    put_codes<Layout>(codes, row, unit + Layout::low(0));
}

void pack(const StoredQ5_0& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q5_0>;
    Codes codes;
    split_nibbles(block.nibbles, codes);
    add_fifth_bits(block.high, codes);
    put_half(unit, row, block.d);
    put_codes<Layout>(codes, row, unit + Layout::low(0));
}

void pack(const StoredQ5_1& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q5_1>;
    Codes codes;
    split_nibbles(block.nibbles, codes);
    add_fifth_bits(block.high, codes);
    put_half(unit, row, block.d);
    put_half(unit + Layout::kMinima, row, block.m);
    put_codes<Layout>(codes, row, unit + Layout::low(0));
}

void pack(const StoredMXFP4& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_MXFP4>;
    Codes codes;
    split_nibbles(block.nibbles, codes);
    Layout::exponents(unit)[row] = std::byte(block.exponent);
    put_codes<Layout>(codes, row, Layout::codes(unit));
}

void pack(const StoredQ8_0& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q8_0>;
    put_half(unit, row, block.d);
    for (int quad = 0; quad < 8; ++quad) {
        std::byte* bytes = unit + Layout::low(0) + (std::ptrdiff_t{quad} * kGroupRows + row) * 4;
        for (int t = 0; t < 4; ++t) {
            bytes[t] = std::byte(block.values[4 * quad + t] + Layout::kOffset);
        }
    }
}

// Q2_K and Q3_K store 128 inputs at a time: the bits of 32 bytes hold four runs of 32.
void read_k_pairs(const std::uint8_t* pairs, int block, Codes& codes) {
    const std::uint8_t* bytes = pairs + std::ptrdiff_t{block / 4} * kQuantBlock;
    for (std::size_t i = 0; i < kQuantBlock; ++i) {
        codes[i] = bytes[i] >> block % 4 * 2 & 3U;
    }
}

void pack(const StoredQ2_K& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q2_K>;
    put_half(unit, row, block.d);
    put_half(unit + Layout::kMinima, row, block.dmin);
    for (int i = 0; i < 16; ++i) {
        unit[Layout::kSubScales + i * kGroupRows + row] = std::byte(block.scales[i]);
    }
    for (int b = 0; b < Layout::kBlocks; ++b) {
        Codes codes;
        read_k_pairs(block.pairs, b, codes);
        put_codes<Layout>(codes, row, unit + Layout::low(b));
    }
}

void pack(const StoredQ3_K& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q3_K>;
    put_half(unit, row, block.d);
    auto* scales = reinterpret_cast<SixBits*>(unit + Layout::kSubScales);
    for (int i = 0; i < 16; ++i) {
        const unsigned low = block.scales[i % 8] >> i / 8 * 4 & 0x0fU;
        const unsigned high = block.scales[8 + i % 4] >> i / 4 * 2 & 3U;
        scales[i % 2].set(i / 2, row, low | high << 4U);
    }
    for (int b = 0; b < Layout::kBlocks; ++b) {
        Codes codes;
        read_k_pairs(block.pairs, b, codes);
        for (std::size_t i = 0; i < kQuantBlock; ++i) {
            codes[i] |= (block.high[i] >> b & 1U) << 2U;
        }
        put_codes<Layout>(codes, row, unit + Layout::low(b));
    }
}

// Unpacks the six-bit scales and minima of the sub-blocks from the twelve bytes of Q4_K and Q5_K.
void put_scales(const std::uint8_t* packed, int row, SixBits& scales, SixBits& minima) {
    for (int b = 0; b < 4; ++b) {
        scales.set(b, row, packed[b] & 63U);
        minima.set(b, row, packed[b + 4] & 63U);
        scales.set(b + 4, row, (packed[b + 8] & 0x0fU) | packed[b] >> 6U << 4U);
        minima.set(b + 4, row, packed[b + 8] >> 4U | packed[b + 4] >> 6U << 4U);
    }
}

// Sub-blocks 2 i and 2 i + 1 share 32 bytes, as their low and high nibbles.
void read_k_nibbles(const std::uint8_t* nibbles, int block, Codes& codes) {
    const std::uint8_t* bytes = nibbles + std::ptrdiff_t{block / 2} * kQuantBlock;
    for (std::size_t i = 0; i < kQuantBlock; ++i) {
        codes[i] = block % 2 == 0 ? bytes[i] & 0x0fU : bytes[i] >> 4U;
    }
}

template <ggml_type Type, typename Stored>
void put_k_header(const Stored& block, int row, std::byte* unit) {
    using Layout = UnitLayout<Type>;
    put_half(unit, row, block.d);
    put_half(unit + Layout::kMinima, row, block.dmin);
    put_scales(block.scales, row, *reinterpret_cast<SixBits*>(unit + Layout::kSubScales),
               *reinterpret_cast<SixBits*>(unit + Layout::kSubMinima));
}

void pack(const StoredQ4_K& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q4_K>;
    put_k_header<GGML_TYPE_Q4_K>(block, row, unit);
    for (int b = 0; b < Layout::kBlocks; ++b) {
        Codes codes;
        read_k_nibbles(block.nibbles, b, codes);
        put_codes<Layout>(codes, row, unit + Layout::low(b));
    }
}

void pack(const StoredQ5_K& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q5_K>;
    put_k_header<GGML_TYPE_Q5_K>(block, row, unit);
    for (int b = 0; b < Layout::kBlocks; ++b) {
        Codes codes;
        read_k_nibbles(block.nibbles, b, codes);
        for (std::size_t i = 0; i < kQuantBlock; ++i) {
            codes[i] |= (block.high[i] >> b & 1U) << 4U;
        }
        put_codes<Layout>(codes, row, unit + Layout::low(b));
    }
}

// Q6_K stores 128 inputs at a time: 64 bytes of nibbles and 32 of high bits hold four runs of 32.
void read_q6_codes(const StoredQ6_K& block, int b, Codes& codes) {
    const int half = b / 4;
    const int part = b % 4;
    const std::uint8_t* low = block.low + half * 64 + part % 2 * 32;
    const std::uint8_t* high = block.high + half * 32;
    for (std::size_t i = 0; i < kQuantBlock; ++i) {
        const unsigned nibble = part < 2 ? low[i] & 0x0fU : low[i] >> 4U;
        codes[i] = static_cast<std::uint8_t>(nibble | (high[i] >> 2 * part & 3U) << 4U);
    }
}

void pack(const StoredQ6_K& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_Q6_K>;
    put_half(unit, row, block.d);
    for (int i = 0; i < 16; ++i) {
        unit[Layout::kSubScales + i * kGroupRows + row] = std::byte(block.scales[i]);
    }
    for (int b = 0; b < Layout::kBlocks; ++b) {
        Codes codes;
        read_q6_codes(block, b, codes);
        put_codes<Layout>(codes, row, unit + Layout::low(b));
    }
}

void pack(const StoredIQ4_XS& block, int row, std::byte* unit) {
    using Layout = UnitLayout<GGML_TYPE_IQ4_XS>;
    put_half(unit, row, block.d);
    auto& scales = *reinterpret_cast<SixBits*>(unit + Layout::kSubScales);
    for (int b = 0; b < Layout::kBlocks; ++b) {
        const unsigned low = block.scales_low[b / 2] >> b % 2 * 4 & 0x0fU;
        const unsigned high = block.scales_high >> 2 * b & 3U;
        scales.set(b, row, low | high << 4U);
        Codes codes;
        split_nibbles(block.nibbles + std::ptrdiff_t{b} * kQuantBlock / 2, codes);
        put_codes<Layout>(codes, row, unit + Layout::low(b));
    }
}

template <ggml_type Type, typename Stored>
void pack_units(const std::byte* stored, int n_in, int row, std::byte* group) {
    using Layout = UnitLayout<Type>;
    for (int i = 0; i < n_in / Layout::kInputs; ++i) {
        Stored block;
        std::memcpy(&block, stored + static_cast<std::size_t>(i) * sizeof block, sizeof block);
        pack(block, row, group + static_cast<std::size_t>(i) * Layout::kBytes);
    }
}

template <std::size_t Size>
void pack_floats(const std::byte* stored, int n_in, int row, std::byte* group) {
    constexpr auto kSize = static_cast<std::ptrdiff_t>(Size);
    for (int i = 0; i < n_in; ++i) {
        std::memcpy(group + (std::ptrdiff_t{i} * kGroupRows + row) * kSize, stored + i * kSize,
                    Size);
    }
}

}  // namespace

void SixBits::set(int block, int row, unsigned value) {
    const auto put = [](std::uint8_t& byte, int shift, unsigned mask, unsigned bits) {
        byte = static_cast<std::uint8_t>((byte & ~(mask << shift)) | bits << shift);
    };
    put(low[block % 4][row], block / 4 * 4, 0x0fU, value & 0x0fU);
    put(high[block / 4][row], block % 4 * 2, 3U, value >> 4U);
}

bool can_pack(ggml_type type, std::int64_t n_in) {
    switch (type) {
        case GGML_TYPE_Q4_0:
        case GGML_TYPE_Q4_1:
        case GGML_TYPE_Q5_0:
        case GGML_TYPE_Q5_1:
        case GGML_TYPE_IQ4_NL:
        case GGML_TYPE_MXFP4:
        case GGML_TYPE_Q8_0:
        case GGML_TYPE_Q2_K:
        case GGML_TYPE_Q3_K:
        case GGML_TYPE_Q4_K:
        case GGML_TYPE_Q5_K:
        case GGML_TYPE_Q6_K:
        case GGML_TYPE_IQ4_XS:
            return n_in % ggml_blck_size(type) == 0;
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
        case GGML_TYPE_F32:
            return true;
        default:
            return false;
    }
}

std::size_t group_bytes(ggml_type type, int n_in) {
    return ggml_row_size(type, n_in) * kGroupRows;
}

std::size_t packed_bytes(ggml_type type, int n_in, int n_out) {
    const std::size_t n_bytes =
        group_bytes(type, n_in) * static_cast<std::size_t>((n_out + kGroupRows - 1) / kGroupRows);
    return (n_bytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
}

void pack_row(const PackedMatrix& matrix, int row, const std::byte* stored) {
    const int in_group = row % kGroupRows;
    const int n_in = matrix.n_in;
    std::byte* group =
        matrix.data + group_bytes(matrix.type, n_in) * static_cast<std::size_t>(row / kGroupRows);
    switch (matrix.type) {
        case GGML_TYPE_Q4_0:
            return pack_units<GGML_TYPE_Q4_0, StoredQ4_0>(stored, n_in, in_group, group);
        case GGML_TYPE_Q4_1:
            return pack_units<GGML_TYPE_Q4_1, StoredQ4_1>(stored, n_in, in_group, group);
        case GGML_TYPE_Q5_0:
            return pack_units<GGML_TYPE_Q5_0, StoredQ5_0>(stored, n_in, in_group, group);
        case GGML_TYPE_Q5_1:
            return pack_units<GGML_TYPE_Q5_1, StoredQ5_1>(stored, n_in, in_group, group);
        case GGML_TYPE_Q8_0:
            return pack_units<GGML_TYPE_Q8_0, StoredQ8_0>(stored, n_in, in_group, group);
        case GGML_TYPE_IQ4_NL:
            return pack_units<GGML_TYPE_IQ4_NL, StoredQ4_0>(stored, n_in, in_group, group);
        case GGML_TYPE_MXFP4:
            return pack_units<GGML_TYPE_MXFP4, StoredMXFP4>(stored, n_in, in_group, group);
        case GGML_TYPE_Q2_K:
            return pack_units<GGML_TYPE_Q2_K, StoredQ2_K>(stored, n_in, in_group, group);
        case GGML_TYPE_Q3_K:
            return pack_units<GGML_TYPE_Q3_K, StoredQ3_K>(stored, n_in, in_group, group);
        case GGML_TYPE_Q4_K:
            return pack_units<GGML_TYPE_Q4_K, StoredQ4_K>(stored, n_in, in_group, group);
        case GGML_TYPE_Q5_K:
            return pack_units<GGML_TYPE_Q5_K, StoredQ5_K>(stored, n_in, in_group, group);
        case GGML_TYPE_Q6_K:
            return pack_units<GGML_TYPE_Q6_K, StoredQ6_K>(stored, n_in, in_group, group);
        case GGML_TYPE_IQ4_XS:
            return pack_units<GGML_TYPE_IQ4_XS, StoredIQ4_XS>(stored, n_in, in_group, group);
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
            return pack_floats<sizeof(std::uint16_t)>(stored, n_in, in_group, group);
        case GGML_TYPE_F32:
            return pack_floats<sizeof(float)>(stored, n_in, in_group, group);
        default:
            KNAP_ASSERT(false, "can_pack() accepted the type");
    }
}

}  // namespace knap
