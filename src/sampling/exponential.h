// An exponential that compilers can vectorise, unlike std::exp.
#pragma once

#include <bit>
#include <cstdint>

namespace knap {

// Below this, results would be subnormal: negligible beside exp(0).
inline constexpr float kExpLowest = -87.0f;

// exp(x) within a relative error of 1e-5, for x from kExpLowest to 0.
inline float approximate_exp(float x) {
    constexpr float kLog2E = 1.44269504f;
    // Adding this leaves the nearest integer in the low bits of the mantissa.
    constexpr float kRounder = 0x1.8p23f;

    const float exponent = x * kLog2E;
    const float rounded = exponent + kRounder;
    const float f = exponent - (rounded - kRounder);  // [-1/2, 1/2]
    // The degree-4 minimax polynomial for 2^f, with a relative error of at most 2.6e-6.
    float power = 0.0095701019f;
    power = power * f + 0.055917860f;
    power = power * f + 0.24024745f;
    power = power * f + 0.69312181f;
    power = power * f + 0.99999926f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) +
                                (std::bit_cast<std::uint32_t>(rounded) << 23));
}

}  // namespace knap
