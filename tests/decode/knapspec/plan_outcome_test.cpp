#include "decode/knapspec/plan_outcome.h"

#include <vector>

#include <gtest/gtest.h>

namespace knap::plan_outcome_test {
namespace {

// A chain of three tokens; the first and the third have a second candidate, nodes 3 and 4.
DraftTree tree() {
    DraftTree tree;
    tree.set_chain(std::vector<Token>{1, 2, 3});
    tree.add(8, kPendingNode);
    tree.add(9, 1);
    return tree;
}

PlanOutcome outcome(const std::vector<int>& path) {
    return outcome_of_plan(tree(), path);
}

TEST(PlanOutcome, CountsTheTokensOfTheChain) {
    for (const int n : {0, 1, 2, 3}) {
        const std::vector<int> all{0, 1, 2};
        const PlanOutcome found = outcome({all.begin(), all.begin() + n});
        EXPECT_EQ(found.n_drafted, 3);
        EXPECT_EQ(found.n_accepted, n);
    }
    EXPECT_EQ(outcome({3}).n_accepted, 0) << "a second candidate is not part of the chain";
    EXPECT_EQ(outcome({0, 1, 4}).n_accepted, 2);
}

TEST(PlanOutcome, TellsOfSecondCandidatesWhereTheFirstWasRejected) {
    EXPECT_EQ(outcome({}).is_second_right, false);
    EXPECT_EQ(outcome({3}).is_second_right, true);
    EXPECT_EQ(outcome({0}).is_second_right, std::nullopt) << "there was none";
    EXPECT_EQ(outcome({0, 1}).is_second_right, false);
    EXPECT_EQ(outcome({0, 1, 4}).is_second_right, true);
    EXPECT_EQ(outcome({0, 1, 2}).is_second_right, std::nullopt) << "nothing was rejected";
    EXPECT_EQ(outcome_of_plan({}, {}).n_drafted, 0);
}

}  // namespace
}  // namespace knap::plan_outcome_test
