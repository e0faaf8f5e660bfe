// What a round says about the plan that drafted: a chain, and perhaps second candidates beside its
// tokens, which are the last nodes of the tree (drafter.h).
#pragma once

#include <optional>

#include "decode/strategy.h"

namespace knap {

struct PlanOutcome {
    int n_drafted = 0;  // tokens of the chain
    int n_accepted = 0;
    // Of the second candidate beside the token that was rejected: whether it was right. Nullopt if
    // there was none, or if no token was rejected.
    std::optional<bool> is_second_right{};
};

PlanOutcome outcome_of_plan(const DraftTree& tree, std::span<const int> path);

}  // namespace knap
