#include "decode/knapspec/source_rating.h"

#include <vector>

#include <gtest/gtest.h>

namespace knap::source_rating_test {
namespace {

const std::vector<double> kFlat(11, 10.0);  // verifying costs the same for any number of rows
const std::vector<double> kSteep = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110};

// Of a chain of ten tokens, each right with probability `rate`.
std::vector<double> reached_at(double rate) {
    std::vector<double> reached;
    double last = 1;
    for (int i = 0; i < 10; ++i) {
        reached.push_back(last *= rate);
    }
    return reached;
}

TEST(SourceRating, SurplusIsTheTokensBeyondTheOtherSource) {
    const SourceRating rating{.length = 3, .tokens = 3, .ms = 20};
    EXPECT_DOUBLE_EQ(rating.surplus(0.1), 1);
    EXPECT_DOUBLE_EQ(rating.tokens_per_ms(), 0.15);
}

TEST(SourceRating, CopyIsAsLongAsPossibleWhenVerifyingIsFree) {
    EXPECT_EQ(rate_copy(reached_at(0.9), {.verify_ms = kFlat}, 10, 0.1).length, 10);
    EXPECT_EQ(rate_copy(reached_at(0.9), {.verify_ms = kFlat}, 4, 0.1).length, 4);
}

TEST(SourceRating, CopyThatCostsAStepPerTokenHasNoSurplus) {
    const SourceRating rating = rate_copy(reached_at(0.9), {.verify_ms = kSteep}, 10, 0.1);
    EXPECT_EQ(rating.length, 1) << "the least loss";
    EXPECT_LT(rating.surplus(0.1), 0);
}

// Two certain tokens in 15 ms, or four in 32 ms: the first has the better rate, but compared with a
// source of 0.1 tokens per ms the second has the larger surplus.
TEST(SourceRating, LongRoundCanBeatAShortOneWithABetterRate) {
    const std::vector<double> verify = {10, 15, 28, 32};
    EXPECT_EQ(rate_copy(reached_at(1), {.verify_ms = verify}, 3, 0.1).length, 3);
    EXPECT_EQ(rate_copy(reached_at(1), {.verify_ms = verify}, 3, 0.13).length, 1);
}

// The second of two candidates is worth a row of 2 ms at 0.1 tokens per ms, the third is not.
TEST(SourceRating, TreesGrowWhileTheNextNodePays) {
    const std::vector<double> verify = {10, 12, 14, 16};
    const SourceRating rating =
        rate_copy(std::vector{0.6, 0.25, 0.15}, {.verify_ms = verify}, 3, 0.1);
    EXPECT_EQ(rating.length, 2);
    EXPECT_DOUBLE_EQ(rating.tokens, 1.85);
    EXPECT_DOUBLE_EQ(rating.ms, 14);
}

TEST(SourceRating, EmptyDraftIsNeverChosen) {
    EXPECT_LT(rate_copy(reached_at(1), {.verify_ms = kFlat}, 0, 0.1).surplus(0.1), 0);
    EXPECT_EQ(rate_plan({.rest = 1}, {.draft_step_ms = 1, .verify_ms = kFlat}, 0).tokens_per_ms(),
              0);
}

TEST(SourceRating, PlanIsRatedAtItsBestLength) {
    const RoundCost cost{.draft_step_ms = 5, .verify_ms = kFlat};
    const SourceRating rating = rate_plan({.rest = 0.9}, cost, 10);
    EXPECT_EQ(rating.length,
              best_length({.rest = 0.9}, cost, {.first = 1, .last = 10})->draft_length);
    EXPECT_DOUBLE_EQ(rating.ms, cost.round_ms(rating.length));
}

// Computed by hand: a guess of two tokens, each right with probability 1/2, and a draft of three.
// If neither is right (1/2), the check gives one token and two steps remain; if one is right (1/4),
// one step remains; if both are (1/4), none.
TEST(SourceRating, CascadeDraftsOnlyWhatTheGuessLeaves) {
    const RoundCost round{.draft_step_ms = 4, .verify_ms = kFlat};
    const AcceptanceByDepth guess{.first = {0.5, 0.5}};
    const SourceRating rating =
        rate_cascade({.rest = 1}, guess, {.round = round, .check_ms = 6}, 3, 0);
    ASSERT_EQ(rating.length, 3);
    EXPECT_DOUBLE_EQ(rating.ms, 6 + (0.5 * 2 + 0.25 * 1) * 4 + 10);
    EXPECT_DOUBLE_EQ(rating.tokens, 4);
}

TEST(SourceRating, CascadeIsAtLeastAsLongAsItsGuess) {
    const RoundCost round{.draft_step_ms = 100, .verify_ms = kFlat};
    const AcceptanceByDepth guess{.first = {1, 1, 1, 1}};
    EXPECT_GE(rate_cascade({.rest = 0.1}, guess, {.round = round, .check_ms = 1}, 8, 0.1).length,
              4);
}

}  // namespace
}  // namespace knap::source_rating_test
