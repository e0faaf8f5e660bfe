// Prepares the heads of a row between the matrix products and attention: rotates queries and keys
// (RoPE), and stores keys and values in the format of the cache.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/isa.h"

namespace knap {

// Half-precision numbers are passed as their bits. Rounding is to nearest, ties to even.
struct HeadsKernel {
    // Rotates pairs of channels of `x` f32 [head_dim]. `turns` f32 [n_rot] has the cosine of a
    // pair's angle at the index of its first channel and the sine at that of its second. Copies
    // channels from n_rot on. n_rot is even; `out` f32 [head_dim] must not overlap `x`.
    using Rotate = void(int head_dim, int n_rot, const float* turns, const float* x, float* out);

    Isa isa;
    Rotate* rotate_neighbours;  // channels 2 i and 2 i + 1 are a pair
    Rotate* rotate_halves;      // channels i and i + n_rot / 2 are a pair
    // Stores `x` f32 [head_dim] as position `lane` of a tile f16 [kKeyTile, head_dim] of keys.
    void (*store_key)(int head_dim, const float* x, int lane, std::uint16_t* tile);
    void (*store_value)(int head_dim, const float* x, std::uint16_t* out);  // f16 [head_dim]
    // The same for an int8 cache (see Int8Rows): position `lane` of a tile of keys, or of values.
    // They return the scale as f16 bits.
    std::uint16_t (*store_int8_key)(int head_dim, const float* x, int lane, std::uint8_t* tile);
    std::uint16_t (*store_int8_value)(int head_dim, const float* x, int lane, std::int8_t* tile);
};

// Every kernel that may run on this machine, fastest first. The last is the plain reference.
std::span<const HeadsKernel> heads_kernels();

}  // namespace knap
