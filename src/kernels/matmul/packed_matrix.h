// Matrices in the layout that our products read. Rows come in groups of 32, whose weights for the
// same four inputs lie together, so that a vector holds one number of many rows. Nothing is rounded
// again: the numbers are those of the file in another order, and they take the same room, but for a
// last group that is filled up with zeros.
//
// A group is a sequence of units, each what the file stores of one row as a block, for 32 rows. In
// a unit of quantised weights stand first the scales, then, for every 32 inputs:
//   low   [4][32 rows][4] bytes: input 4 j + t in the low nibble of byte t of quad j, input
//         16 + 4 j + t in the high one. Eight bits wide: [8][32 rows][4] bytes, one an input
//   high  the fifth bit, [32 rows][4] bytes: bit j of byte t belongs to input 4 j + t; the fifth
//   and
//         sixth, [2][32 rows][4] bytes: bits 2 j and 2 j + 1 of byte t of the first half to input
//         4 j + t, of the second to input 16 + 4 j + t
// Scales, f16 unless said otherwise: d [32 rows]; Q4_1 also m [32]; Q4_K and Q5_K d [32], dmin
// [32], and the six-bit scales and minima of the eight sub-blocks (see SixBits); Q6_K d [32] and i8
// [16][32]. Floats: [n_in][32 rows].
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace knap {

inline constexpr int kGroupRows = 32;
inline constexpr int kQuantBlock = 32;  // inputs that share one dot product of integers

struct PackedMatrix {
    ggml_type type = GGML_TYPE_COUNT;
    int n_in = 0;
    int n_out = 0;
    std::byte* data = nullptr;  // packed_bytes(), aligned to 64

    int n_groups() const { return (n_out + kGroupRows - 1) / kGroupRows; }
};

// Six-bit numbers of eight sub-blocks for 32 rows, 192 bytes: low nibbles [4][32], sub-block b of
// b < 4 in the low half of a byte of row b and b + 4 in the high one; then bits 4 and 5, [2][32],
// sub-block b at bits 2 (b % 4) of row b / 4.
struct SixBits {
    std::uint8_t low[4][kGroupRows];
    std::uint8_t high[2][kGroupRows];

    void set(int block, int row, unsigned value);
};

// Whether there is a layout for such a matrix.
bool can_pack(ggml_type type, std::int64_t n_in);
std::size_t group_bytes(ggml_type type, int n_in);
std::size_t packed_bytes(ggml_type type, int n_in, int n_out);

// Writes row `row` of the matrix, given as the file stores it. Other rows stay as they are; memory
// that starts as zeros makes rows that nobody writes zero.
void pack_row(const PackedMatrix& matrix, int row, const std::byte* stored);

}  // namespace knap
