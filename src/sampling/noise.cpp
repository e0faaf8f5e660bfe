#include "sampling/noise.h"

#include <cmath>

#include "base/hash.h"

namespace knap {

PositionNoise::PositionNoise(std::uint64_t seed, std::int64_t position)
    : key_(mix_in(mix_in(0, seed), static_cast<std::uint64_t>(position))) {}

double PositionNoise::uniform(Token token) const {
    // 52 bits and a half: 53 would round the largest value up to 1.
    const std::uint64_t bits = mix_in(key_, static_cast<std::uint64_t>(token)) >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

double PositionNoise::gumbel(Token token) const {
    return -std::log(-std::log(uniform(token)));
}

double gumbel_noise(std::uint64_t seed, std::int64_t position, Token token) {
    return PositionNoise(seed, position).gumbel(token);
}

}  // namespace knap
