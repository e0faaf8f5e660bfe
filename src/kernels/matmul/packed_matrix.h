// Matrices in the layout that our kernels read. Rows come in groups of 32. Within a group the
// weights of all rows for the same four inputs are adjacent, so a vector holds one number of many
// rows. Packing only reorders the numbers of the file: nothing is rounded, and the size stays the
// same except that the last group is padded with zeros.
//
// A group is a sequence of units. A unit holds, for each of the 32 rows, what the file stores as
// one block. A unit of quantised weights has the scales first, then for every 32 inputs:
//   low   types of 4 to 6 bits: [4][32 rows][4] bytes; byte t of quad j has the low bits of input
//         4 j + t in its low nibble and of input 16 + 4 j + t in its high nibble.
//         2 and 3 bits: [2][32 rows][4] bytes; bits 2 j and 2 j + 1 of byte t are the low bits of
//         input 4 j + t in the first half, of input 16 + 4 j + t in the second.
//         8 bits: [8][32 rows][4] bytes, one per input
//   high  3 and 5 bits: [32 rows][4] bytes; bit j of byte t is the highest bit of input 4 j + t.
//         6 bits: the two highest bits, like the low ones of 2 bits
// Scales, f16 unless noted:
//   Q4_0, Q5_0, Q8_0, IQ4_NL  d [32 rows]
//   Q4_1, Q5_1                d [32], m [32]
//   MXFP4                     a byte of exponent [32], before or after the codes (unit_layout.h)
//   Q2_K                      d [32], dmin [32], u8 [16][32]: a scale and a minimum, four bits each
//   Q3_K                      d [32], two SixBits: scales of the first halves, of the second
//   Q4_K, Q5_K                d [32], dmin [32], SixBits of scales, SixBits of minima
//   Q6_K                      d [32], i8 [16][32]
//   IQ4_XS                    d [32], SixBits of scales
// Floats: [n_in][32 rows].
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace knap {

inline constexpr int kGroupRows = 32;
inline constexpr std::size_t kPackedAlignment = 64;
inline constexpr int kQuantBlock = 32;  // inputs that share an integer dot product

struct PackedMatrix {
    ggml_type type = GGML_TYPE_COUNT;
    int n_in = 0;
    int n_out = 0;
    std::byte* data = nullptr;  // packed_bytes(), aligned to kPackedAlignment

    int n_groups() const { return (n_out + kGroupRows - 1) / kGroupRows; }
};

// Six-bit numbers of eight sub-blocks for 32 rows, 192 bytes. First the low nibbles, [4][32]: byte
// row b has sub-block b in its low half and sub-block b + 4 in its high half. Then bits 4 and 5,
// [2][32]: sub-block b is at bit 2 (b % 4) of byte row b / 4.
struct SixBits {
    static constexpr float kSignedOffset = 32;  // of types whose numbers are signed

    std::uint8_t low[4][kGroupRows];
    std::uint8_t high[2][kGroupRows];

    void set(int block, int row, unsigned value);
};

// True when there is a layout for such a matrix.
bool can_pack(ggml_type type, std::int64_t n_in);
std::size_t group_bytes(ggml_type type, int n_in);
// A multiple of kPackedAlignment, so that matrices can follow one another.
std::size_t packed_bytes(ggml_type type, int n_in, int n_out);

// Writes row `row`, given as the file stores it, and leaves the others alone. Start from zeroed
// memory if some rows stay unwritten.
void pack_row(const PackedMatrix& matrix, int row, const std::byte* stored);

}  // namespace knap
