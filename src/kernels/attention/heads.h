// What happens to the heads of a row between their products and attention: queries and keys are
// rotated, keys and values take the form that the cache holds them in.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/isa.h"

namespace knap {

// Half-precision numbers are given as their bits; numbers are rounded to them to nearest, ties to
// even.
struct HeadsKernel {
    // Turns pairs of channels of `x` f32 [head_dim] by the angles whose cosine and sine stand in
    // the same places of `turns` f32 [n_rot]; the other channels are copied. n_rot is even, and
    // `out` f32 [head_dim] is other memory than `x`.
    using Rotate = void(int head_dim, int n_rot, const float* turns, const float* x, float* out);

    Isa isa;
    Rotate* rotate_neighbours;  // channels 2 i and 2 i + 1 are a pair
    Rotate* rotate_halves;      // channels i and i + n_rot / 2 are
    // `x` f32 [head_dim] becomes position `lane` of a tile f16 [kKeyTile, head_dim] of keys.
    void (*store_key)(int head_dim, const float* x, int lane, std::uint16_t* tile);
    void (*store_value)(int head_dim, const float* x, std::uint16_t* out);  // f16 [head_dim]
    // The same for an int8 cache (see Int8Rows): position `lane` of a tile of keys, or of values.
    // They return its scale, f16.
    std::uint16_t (*store_int8_key)(int head_dim, const float* x, int lane, std::uint8_t* tile);
    std::uint16_t (*store_int8_value)(int head_dim, const float* x, int lane, std::int8_t* tile);
};

// Every kernel that may run on this machine, the fastest first; the last is the plain reference.
std::span<const HeadsKernel> heads_kernels();

}  // namespace knap
