// What the gate of an MLP goes through before it multiplies the other half.
#pragma once

#include <cstdint>

namespace knap {

enum class Activation : std::uint8_t {
    silu,
    gelu,            // with tanh, as Gemma has it
    clamped_swiglu,  // of gpt-oss: both halves are clamped, and the other one is increased by 1
};
// Of clamped_swiglu.
inline constexpr float kSwigluLimit = 7.0f;
inline constexpr float kSwigluAlpha = 1.702f;

}  // namespace knap
