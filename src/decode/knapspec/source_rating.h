// What a round is expected to yield with each draft source: tokens, time, and the draft length that
// yields most (docs/methods.md, "Draft length and choice"). Arithmetic only.
#pragma once

#include <span>
#include <vector>

#include "search/throughput.h"

namespace knap {

struct SourceRating {
    int length = 0;     // tokens to draft; of a tree, nodes
    double tokens = 1;  // expected number that the round emits, those of other sessions included
    double ms = 0;      // expected time of the round

    double tokens_per_ms() const { return ms > 0 ? tokens / ms : 0; }
    // Tokens beyond those that a rate of `rate` tokens per millisecond gives in the same time. Of
    // several sources for the next round, the one with the largest surplus is best in the long run;
    // tokens / ms would prefer a short good round to a long good one.
    double surplus(double rate) const { return tokens - rate * ms; }
};

// A round without a draft.
SourceRating rate_plain(const RoundCost& cost);

// A round with up to `max_nodes` tokens that cost nothing to draft, at the number of them with the
// largest surplus over `rate`. `reached[i]` is the probability that token i of a draft, a chain or
// a tree, is accepted; any number of the first ones is a draft.
SourceRating rate_copy(std::span<const double> reached,
                       const RoundCost& cost,
                       int max_nodes,
                       double rate);

// A round drafted with a plan, at the length with the most tokens per millisecond.
SourceRating rate_plan(const AcceptanceByDepth& acceptance, const RoundCost& cost, int max_length);

// The costs of a plan that checks copied tokens in one pass and continues from there
// (docs/methods.md, "Cascade").
struct CascadeCost {
    RoundCost round;      // of the plan without a guess
    double check_ms = 0;  // a pass of the plan over the pending token and the guess
};
// A round with a guess of `guess.first.size()` copied tokens; `guess` gives by depth the
// probability that the plan chooses the guessed token. Rated at the length with the largest surplus
// over `rate`, among lengths that hold the whole guess.
SourceRating rate_cascade(const AcceptanceByDepth& acceptance,
                          const AcceptanceByDepth& guess,
                          const CascadeCost& cost,
                          int max_length,
                          double rate);

}  // namespace knap
