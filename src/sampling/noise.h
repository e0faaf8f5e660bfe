// Stateless randomness: the noise of a token at a position is a hash of seed, position and token.
// Plain decoding, a draft and its verification see the same noise in whatever order they draw. That
// makes sampled text independent of how it was drafted (docs/methods.md, "Shared noise").
#pragma once

#include <cstdint>

#include "knap/types.h"

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
    PositionNoise(std::uint64_t seed, std::int64_t position);

    // Noise of the same seed and position that is independent of this one, and different for each
    // purpose and attempt.
    PositionNoise independent(NoisePurpose purpose, std::uint64_t attempt = 0) const;

    // Uniform in the open interval (0, 1): a multiple of 2^-52 plus 2^-53.
    double uniform(Token token) const;

  private:
    explicit PositionNoise(std::uint64_t key) : key_(key) {}

    std::uint64_t key_;
};

}  // namespace knap
