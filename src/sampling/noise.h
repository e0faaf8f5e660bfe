// Randomness without state: the noise of a token at a position is a hash of seed, position and
// token. Whoever draws with it (plain decoding, a draft, its verification, in whatever order) sees
// the same noise, which is what makes sampled text independent of how it was drafted (the
// shared-noise rule).
#pragma once

#include <cstdint>

#include "knap/types.h"

namespace knap {

// What noise other than the target's own choice is for. Streams of other purposes are independent.
enum class NoisePurpose : std::uint64_t {
    draft = 1,       // choosing drafts independently of the target
    acceptance = 2,  // the ratio rule's coins
    assumption = 3,  // coins of an assumed acceptance rate
};

// The noise of one position, for any number of tokens.
class PositionNoise {
  public:
    // The noise of the target's own choice.
    PositionNoise(std::uint64_t seed, std::int64_t position);

    // Noise of the same seed and position that is independent of this one; another for each purpose
    // and attempt.
    PositionNoise independent(NoisePurpose purpose, std::uint64_t attempt = 0) const;

    // Uniform in the open interval (0, 1): a multiple of 2^-52 plus 2^-53.
    double uniform(Token token) const;
    // Standard Gumbel: -log(-log(uniform)). argmax over v of log p(v) + gumbel(v) is a draw from p.
    double gumbel(Token token) const;

  private:
    explicit PositionNoise(std::uint64_t key) : key_(key) {}

    std::uint64_t key_;
};

double gumbel_noise(std::uint64_t seed, std::int64_t position, Token token);

}  // namespace knap
