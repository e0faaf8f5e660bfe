// Randomness without state: the noise of a token at a position is a hash of seed, position and
// token. Whoever draws with it (plain decoding, a draft, its verification, in whatever order) sees
// the same noise, which is what makes sampled text independent of how it was drafted (the
// shared-noise rule).
#pragma once

#include <cstdint>

#include "knap/types.h"

namespace knap {

// The noise of one position, for any number of tokens.
class PositionNoise {
  public:
    PositionNoise(std::uint64_t seed, std::int64_t position);

    // Uniform in the open interval (0, 1): a multiple of 2^-52 plus 2^-53.
    double uniform(Token token) const;
    // Standard Gumbel: -log(-log(uniform)). argmax over v of log p(v) + gumbel(v) is a draw from p.
    double gumbel(Token token) const;

  private:
    std::uint64_t key_;
};

double gumbel_noise(std::uint64_t seed, std::int64_t position, Token token);

}  // namespace knap
