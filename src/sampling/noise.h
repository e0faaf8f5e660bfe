// Stateless randomness: the noise of a token at a position is a hash of seed, position and token.
// Plain decoding, a draft and its verification see the same noise in whatever order they draw. That
// makes sampled text independent of how it was drafted (docs/methods.md, "Shared noise").
// Devices that draw tokens share this definition.
#pragma once

#include <cstdint>

#include "knap/types.h"

#include "base/hash.h"
#include "base/host_device.h"

namespace knap {

// Uses of noise other than the whole model's own choice. Each purpose has an independent stream.
enum class NoisePurpose : std::uint64_t {
    draft = 1,       // drafts chosen independently of the whole model
    acceptance = 2,  // acceptance under the ratio rule
    assumption = 3,  // acceptance at an assumed rate
};

// The noise of one position, for any number of tokens.
class PositionNoise {
  public:
    // The noise of the whole model's own choice.
    KNAP_HOST_DEVICE PositionNoise(std::uint64_t seed, std::int64_t position)
        : key_(mix_in(mix_in(0, seed), static_cast<std::uint64_t>(position))) {}

    // Noise of the same seed and position that is independent of this one, and different for each
    // purpose and attempt.
    PositionNoise independent(NoisePurpose purpose, std::uint64_t attempt = 0) const {
        // Tokens have 32 bits, so a shifted purpose cannot equal a token's word.
        const std::uint64_t salt = static_cast<std::uint64_t>(purpose) << 32;
        return PositionNoise(mix_in(mix_in(key_, salt), attempt));
    }

    // Uniform in the open interval (0, 1): a multiple of 2^-52 plus 2^-53.
    KNAP_HOST_DEVICE double uniform(Token token) const {
        // 52 bits plus a half: with 53 bits the largest value would round up to 1.
        const std::uint64_t bits = mix_in(key_, static_cast<std::uint64_t>(token)) >> 12;
        return (static_cast<double>(bits) + 0.5) * 0x1p-52;
    }

  private:
    explicit PositionNoise(std::uint64_t key) : key_(key) {}

    std::uint64_t key_;
};

}  // namespace knap
