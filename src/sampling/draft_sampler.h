// The draft's side of an acceptance rule: which tokens to draft after a row of draft logits, and
// the distribution that they were really drawn from. It applies the whole model's transforms (bias,
// penalties, temperature, ...) because drafts should agree with the whole model; the rule would be
// exact with any others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/noise.h"
#include "sampling/ranking.h"
#include "sampling/sampler.h"
#include "sampling/stop_rule.h"

namespace knap {

struct DraftChoice {
    std::vector<Token> tokens;  // the children to draft, best or first drawn first; at least one
    bool is_drawn = false;      // drawn from `q` without replacement
    Distribution q;             // after all transforms; empty when greedy
};

class DraftSampler {
  public:
    // The sampler's history must end with the token that the logits follow. `sampler` must outlive
    // this object.
    DraftSampler(Sampler& sampler, AcceptanceRule rule);

    // How a device chooses the same single tokens from raw logits; nullopt where it cannot, because
    // of bias, penalties, or noise that depends on what was drafted before.
    std::optional<DrawRule> draw_rule() const;

    // Chooses at most `n_tokens` children for `position`, fewer when fewer can be drawn. The result
    // is valid until the next call.
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

// softmax(logits)[token] before the sampling transform (docs/methods.md, "Confidence exit"). Within
// a relative error of 1e-5, and at most 1. Throws when the row has no usable maximum
// (row_maximum.h).
float confidence(std::span<const float> logits, Token token);

// The same for the token that a stop rule looks at.
float confidence(std::span<const float> logits, const DraftChoice& choice, ConfidenceOf whose);

}  // namespace knap
