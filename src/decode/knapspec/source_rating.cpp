#include "decode/knapspec/source_rating.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace knap {

namespace {

// Of the ratings that `rate_length` gives for lengths first..last, returns the one with the highest
// `value`; of equals, the shortest. If there is no length, returns a rating that is never chosen.
template <typename RateLength, typename Value>
SourceRating best_of(int first, int last, const RateLength& rate_length, const Value& value) {
    SourceRating best{.tokens = 0, .ms = std::numeric_limits<double>::infinity()};
    double best_value = -std::numeric_limits<double>::infinity();
    for (int length = first; length <= last; ++length) {
        const SourceRating rating = rate_length(length);
        if (value(rating) > best_value) {
            best_value = value(rating);
            best = rating;
        }
    }
    return best;
}

// Expected number of one-row steps after the pass over the guess, for a draft of `length` tokens:
// if the first j guesses are right, the pass gives j + 1 drafts.
double expected_steps(const AcceptanceByDepth& guess, int length) {
    const int n_guess = static_cast<int>(guess.first.size());
    double reached = 1;  // the probability that the first j guesses are right
    double steps = 0;
    for (int j = 0; j <= n_guess; ++j) {
        const double goes_on = j < n_guess ? guess.at(j) : 0;
        steps += reached * (1 - goes_on) * std::max(0, length - j - 1);
        reached *= goes_on;
    }
    return steps;
}

}  // namespace

SourceRating rate_plain(const RoundCost& cost) {
    return {.length = 0, .tokens = 1 + cost.n_other_tokens, .ms = cost.verify_ms.front()};
}

SourceRating rate_copy(std::span<const double> reached,
                       const RoundCost& cost,
                       int max_nodes,
                       double rate) {
    double tokens = 1 + cost.n_other_tokens;
    return best_of(
        1, std::min({max_nodes, cost.max_length(), static_cast<int>(reached.size())}),
        [&](int n_nodes) {
            const auto n = static_cast<std::size_t>(n_nodes);
            tokens += reached[n - 1];
            return SourceRating{.length = n_nodes, .tokens = tokens, .ms = cost.verify_ms[n]};
        },
        [&](const SourceRating& rating) { return rating.surplus(rate); });
}

SourceRating rate_plan(const AcceptanceByDepth& acceptance, const RoundCost& cost, int max_length) {
    return best_of(
        1, std::min(max_length, cost.max_length()),
        [&](int length) {
            return SourceRating{.length = length,
                                .tokens = expected_tokens(acceptance, length) + cost.n_other_tokens,
                                .ms = cost.round_ms(length)};
        },
        [](const SourceRating& rating) { return rating.tokens_per_ms(); });
}

SourceRating rate_cascade(const AcceptanceByDepth& acceptance,
                          const AcceptanceByDepth& guess,
                          const CascadeCost& cost,
                          int max_length,
                          double rate) {
    const int n_guess = static_cast<int>(guess.first.size());
    return best_of(
        std::max(1, n_guess), std::min(max_length, cost.round.max_length()),
        [&](int length) {
            const double draft_ms =
                cost.check_ms + expected_steps(guess, length) * cost.round.draft_step_ms;
            const double without_drafts =
                cost.round.round_ms(length) - length * cost.round.draft_step_ms;
            return SourceRating{
                .length = length,
                .tokens = expected_tokens(acceptance, length) + cost.round.n_other_tokens,
                .ms = draft_ms + without_drafts};
        },
        [&](const SourceRating& rating) { return rating.surplus(rate); });
}

}  // namespace knap
