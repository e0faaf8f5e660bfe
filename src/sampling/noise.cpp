#include "sampling/noise.h"

#include "base/hash.h"

namespace knap {

PositionNoise::PositionNoise(std::uint64_t seed, std::int64_t position)
    : key_(mix_in(mix_in(0, seed), static_cast<std::uint64_t>(position))) {}

PositionNoise PositionNoise::independent(NoisePurpose purpose, std::uint64_t attempt) const {
    // Tokens have 32 bits, so a shifted purpose cannot equal a token's word.
    const std::uint64_t salt = static_cast<std::uint64_t>(purpose) << 32;
    return PositionNoise(mix_in(mix_in(key_, salt), attempt));
}

double PositionNoise::uniform(Token token) const {
    // 52 bits plus a half: with 53 bits the largest value would round up to 1.
    const std::uint64_t bits = mix_in(key_, static_cast<std::uint64_t>(token)) >> 12;
    return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

}  // namespace knap
