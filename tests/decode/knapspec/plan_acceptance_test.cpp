#include "decode/knapspec/plan_acceptance.h"

#include <vector>

#include <gtest/gtest.h>

namespace knap::plan_acceptance_test {
namespace {

TEST(PlanAcceptance, StartsAtThePrior) {
    const PlanAcceptance acceptance(prior_of(0.75, 4));
    EXPECT_DOUBLE_EQ(acceptance.rate(), 0.75);
    EXPECT_DOUBLE_EQ(acceptance.by_depth().at(0), 0.75);
    EXPECT_DOUBLE_EQ(acceptance.by_depth().at(9), 0.75);
    EXPECT_EQ(acceptance.n_observed(), 0);
}

TEST(PlanAcceptance, ReplayedRowsAreShrunkTowardsThePrior) {
    PlanAcceptance acceptance(prior_of(0.5, 4));
    acceptance.replay(8, 8);
    EXPECT_DOUBLE_EQ(acceptance.rate(), 10.0 / 12.0) << "(8 + 2) of (8 + 4)";
}

// However many rows were replayed, rounds soon outweigh them.
TEST(PlanAcceptance, ReplayNeverWeighsMoreThanSixteenDrafts) {
    PlanAcceptance acceptance(prior_of(0.5, 4));
    acceptance.replay(1000, 1000);
    for (int i = 0; i < 16; ++i) {
        acceptance.observe(1, 0, {});
    }
    EXPECT_LT(acceptance.rate(), 0.55);
}

TEST(PlanAcceptance, DraftsAfterARejectedOneDoNotCount) {
    PlanAcceptance acceptance(prior_of(0.5, 1e-9));
    acceptance.observe(5, 1, {});
    EXPECT_NEAR(acceptance.n_observed(), 2, 0.02);
    EXPECT_NEAR(acceptance.rate(), 0.5, 0.01);
}

TEST(PlanAcceptance, EveryPositionHasItsOwnRate) {
    PlanAcceptance acceptance(prior_of(0.5, 4));
    for (int i = 0; i < 100; ++i) {
        acceptance.observe(2, 1, {});  // accepts the first, rejects the second
    }
    EXPECT_GT(acceptance.by_depth().at(0), 0.9);
    EXPECT_LT(acceptance.by_depth().at(1), 0.1);
    EXPECT_NEAR(acceptance.by_depth().at(2), acceptance.rate(), 1e-12) << "never reached";
}

TEST(PlanAcceptance, ConfidenceBinsAreCalibratedByOutcomes) {
    PlanAcceptance acceptance(prior_of(0.5, 4));
    EXPECT_NEAR(acceptance.by_confidence()[9], 0.95, 1e-12) << "a confidence is believed at first";
    const std::vector<float> confidences = {0.95f, 0.15f};
    for (int i = 0; i < 100; ++i) {
        acceptance.observe(2, 0, confidences);  // confident but wrong; the second does not count
    }
    EXPECT_LT(acceptance.by_confidence()[9], 0.1);
    EXPECT_NEAR(acceptance.by_confidence()[1], 0.15, 1e-12);
}

TEST(PlanAcceptance, ConfidenceOfOneFallsIntoTheLastBin) {
    PlanAcceptance acceptance(prior_of(0.5, 4));
    const std::vector<float> sure = {1.0f};
    for (int i = 0; i < 100; ++i) {
        acceptance.observe(1, 0, sure);
    }
    EXPECT_LT(acceptance.by_confidence()[9], 0.1);
}

TEST(PlanAcceptance, SecondCandidatesHaveARateOfTheirOwn) {
    PlanAcceptance acceptance(prior_of(0.9, 4));
    const double believed = acceptance.rate_of_seconds();
    for (int i = 0; i < 20; ++i) {
        acceptance.observe_second(true);
    }
    EXPECT_GT(acceptance.rate_of_seconds(), believed + 0.3);
    EXPECT_NEAR(acceptance.rate(), 0.9, 1e-12);
    const double seen = acceptance.rate_of_seconds();
    acceptance.fade(4);
    EXPECT_LT(acceptance.rate_of_seconds(), seen);
    EXPECT_GT(acceptance.rate_of_seconds(), believed);
}

}  // namespace
}  // namespace knap::plan_acceptance_test
