#include "decode/knapspec/plan_outcome.h"

#include <algorithm>

namespace knap {

PlanOutcome outcome_of_plan(const DraftTree& tree, std::span<const int> path) {
    const int n_drafted = tree.max_depth();
    const auto is_in_chain = [&](int node) { return node < n_drafted; };
    const auto n_accepted = static_cast<int>(std::ranges::count_if(path, is_in_chain));
    PlanOutcome outcome{.n_drafted = n_drafted, .n_accepted = n_accepted};
    const int rejected_after = n_accepted - 1;  // node; kPendingNode if the first was rejected
    if (n_accepted < n_drafted && tree.next_sibling(tree.first_child(rejected_after)) != kNoNode) {
        outcome.is_second_right = static_cast<int>(path.size()) > n_accepted;
    }
    return outcome;
}

}  // namespace knap
