// The draft's side of an acceptance rule: which tokens to draft after a row of draft logits, and
// the distribution that they were really drawn from. The same transforms as the target's apply
// (bias, penalties, temperature, ...), because agreement is what drafting is for; the rule would
// stay exact with any others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/noise.h"
#include "sampling/ranking.h"
#include "sampling/sampler.h"

namespace knap {

struct DraftChoice {
    std::vector<Token> tokens;  // the children to draft, best or first drawn first; at least one
    bool is_drawn = false;      // `q` is what they were drawn from, without replacement
    Distribution q;             // after all transforms; empty when greedy
};

class DraftSampler {
  public:
    // The sampler's history must end with the token that the logits follow. Must outlive this.
    DraftSampler(Sampler& sampler, AcceptanceRule rule);

    // At most `n_tokens` children for `position`; fewer where fewer can be drawn.
    // Valid until the next call.
    const DraftChoice& choose(std::span<const float> logits, std::int64_t position, int n_tokens);

  private:
    void choose_largest(std::span<const float> logits, std::size_t n_tokens);
    PositionNoise noise(std::int64_t position);

    Sampler& sampler_;
    AcceptanceRule rule_;
    DraftChoice choice_;
    Ranking ranking_;
    std::vector<Draw> draws_;
    std::int64_t highest_position_ = -1;  // that noise was used for
    std::uint64_t attempt_ = 0;
};

// softmax(logits)[token], untransformed: what confidence exits look at (methods 1.8). Within a
// relative error of 1e-5, and at most 1. Throws when the row has no usable maximum (row_maximum.h).
float confidence(std::span<const float> logits, Token token);

// Whose probability a confidence is.
enum class ConfidenceOf : std::uint8_t {
    drafted,    // the first drafted token's, untransformed
    likeliest,  // the likeliest token's, untransformed
    drawn,      // the first drafted token's in `q`; when greedy, as `drafted`
};
float confidence(std::span<const float> logits, const DraftChoice& choice, ConfidenceOf whose);

}  // namespace knap
