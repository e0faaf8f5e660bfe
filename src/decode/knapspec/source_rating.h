// What a round is expected to give with each draft source: tokens, time, and the draft length at
// which it gives most. Arithmetic alone.
#pragma once

#include <span>
#include <vector>

#include "search/throughput.h"

namespace knap {

struct SourceRating {
    int length = 0;     // tokens to draft
    double tokens = 1;  // that the round emits, expected
    double ms = 0;      // that it takes

    double tokens_per_ms() const { return ms > 0 ? tokens / ms : 0; }
    // Tokens beyond those that `rate` tokens per millisecond give in the same time. Of several
    // sources for the next round, the one with the largest surplus is best in the long run, where
    // the fraction tokens / ms would prefer a short good round to a long good one.
    double surplus(double rate) const { return tokens - rate * ms; }
};

// A round without a draft. `verify_ms` [g]: the whole model over the pending token and g drafts.
SourceRating rate_plain(std::span<const double> verify_ms);

// Tokens that cost nothing to draft, up to `max_length` of them: the length with the largest
// surplus over `rate`.
SourceRating rate_copy(const AcceptanceByDepth& acceptance,
                       std::span<const double> verify_ms,
                       int max_length,
                       double rate);

// Drafting with a plan: the length of the most tokens per millisecond.
SourceRating rate_plan(const AcceptanceByDepth& acceptance, const RoundCost& cost, int max_length);

// A plan that checks `guess.first.size()` copied tokens in one pass and drafts on from there
// (methods 3.20).
struct CascadeCost {
    RoundCost round;      // of the plan without a guess
    double check_ms = 0;  // a pass of the plan over the pending token and the guess
};
// `guess`: by depth, the chance that the plan's own choice is the guessed token. The length with
// the largest surplus over `rate`, of those that hold the whole guess.
SourceRating rate_cascade(const AcceptanceByDepth& acceptance,
                          const AcceptanceByDepth& guess,
                          const CascadeCost& cost,
                          int max_length,
                          double rate);

}  // namespace knap
