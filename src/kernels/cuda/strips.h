// The layout of matrices that the CUDA kernels read: strips of 16 rows, each a sequence of units
// along the inputs. A unit holds what the tensor cores of one warp take in a few instructions, in
// the order in which its lanes take it, so that a lane's part is one 16-byte load. Packing permutes
// the bytes of the file within each strip: nothing is rounded, and the size stays the same.
//
// The numbers of 32 inputs of a strip are the A fragments a0..a3 of `mma.m16n8k32`. With g = lane /
// 4 and q = lane % 4, byte t of a_j is row g + 8 (j % 2), input 4 q + t + 16 (j / 2).
//
// A unit of 64 inputs, by parts:
//   low    4 to 6 bits: [lane][a_j][t], the low nibble for inputs 0..31, the high one for 32..63.
//          8 bits: [inputs / 32][lane][a_j][t]
//   high   5 bits: [lane][t], bit 4 * block + j for block 0 or 1.
//          6 bits: [lane][block][t], bits 2 j and 2 j + 1
// Types of 256 inputs have four such units, all low parts first, then all high parts. Scales last:
//   Q4_0, Q5_0, Q8_0  f16 [g][block][row g, row g + 8]
//   Q4_1, Q5_1        the same, then minima likewise
//   MXFP4             an exponent [g][block][row g, row g + 8]
//   Q4_K, Q5_K        [g][row g, row g + 8] of: f16 d, dmin, and for each 64 inputs 24 bits:
//                     six each for the scales of both blocks, then for their minima
//   Q6_K              i8 [64 inputs each][g][row g, row g + 8][16 inputs each], then
//                     f16 d [g][row g, row g + 8]
// Signed types have their codes' highest bit flipped, so that the codes are two's complement.
// F16, BF16: a unit is 64 inputs, [4][lane][a_j][2] for `mma.m16n8k16`: half h of a_j in step s is
// row g + 8 (j % 2), input 16 q + 4 s + 2 (j / 2) + h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace knap {

inline constexpr int kStripRows = 16;
inline constexpr int kCudaBlock = 32;  // inputs that share a scale

struct StripUnit {
    int n_inputs = 0;
    int n_bytes = 0;  // of a strip's 16 rows; 0: the type has no kernels
};

constexpr StripUnit strip_unit(ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q4_0:
            return {64, 576};
        case GGML_TYPE_Q4_1:
            return {64, 640};
        case GGML_TYPE_Q5_0:
            return {64, 704};
        case GGML_TYPE_Q5_1:
            return {64, 768};
        case GGML_TYPE_Q8_0:
            return {64, 1088};
        case GGML_TYPE_MXFP4:
            return {64, 544};
        case GGML_TYPE_Q4_K:
            return {256, 2304};
        case GGML_TYPE_Q5_K:
            return {256, 2816};
        case GGML_TYPE_Q6_K:
            return {256, 3360};
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
            return {64, 2048};
        default:
            return {};
    }
}

inline constexpr int kRoundUnits = 8;  // units of a strip that eight warps take, one each

// Rounds of units that are copied to shared memory at once: about 18 KB.
constexpr int copied_rounds(ggml_type type) {
    const int round_bytes = kRoundUnits * strip_unit(type).n_bytes;
    return round_bytes == 0 || round_bytes > 9216 ? 1 : 18432 / round_bytes;
}

constexpr int copied_bytes(ggml_type type) {
    return copied_rounds(type) * kRoundUnits * strip_unit(type).n_bytes;
}

// Products with these types take their inputs as floats rounded to 16 bits, others as int8 blocks.
constexpr bool takes_halves(ggml_type type) {
    return type == GGML_TYPE_F16 || type == GGML_TYPE_BF16;
}

// Whether matrices have this layout.
constexpr bool can_pack_strips(ggml_type type, std::int64_t n_in) {
    const StripUnit unit = strip_unit(type);
    return unit.n_bytes > 0 && n_in % unit.n_inputs == 0;
}

// The rows of a matrix in whole strips. The last ones may be of no use to anybody.
constexpr std::int64_t rows_in_strips(std::int64_t n_out) {
    return (n_out + kStripRows - 1) / kStripRows * kStripRows;
}

}  // namespace knap
