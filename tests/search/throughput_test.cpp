#include "search/throughput.h"

#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "support/speedup_bound.h"

namespace knap::throughput_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ExpectedTokens, AreAGeometricSumForOneAcceptance) {
    EXPECT_DOUBLE_EQ(expected_tokens({.rest = 0.5}, 3), 1.875);
    EXPECT_DOUBLE_EQ(expected_tokens({.rest = 0.9}, 10), (1 - 0.31381059609) / 0.1);
    EXPECT_DOUBLE_EQ(expected_tokens({.rest = 0.9}, 0), 1);
}

TEST(ExpectedTokens, AreAllDraftsAndOneMoreWhenEverythingIsAccepted) {
    for (const int length : {0, 1, 10, 17}) {
        EXPECT_EQ(expected_tokens({.rest = 1.0}, length), length + 1);
    }
}

TEST(ExpectedTokens, AreOneWhenNothingIsAccepted) {
    EXPECT_EQ(expected_tokens({.rest = 0.0}, 5), 1);
}

TEST(ExpectedTokens, FollowTheAcceptanceOfEachPosition) {
    const AcceptanceByDepth acceptance{.first = {0.8, 0.5}, .rest = 0.25};
    EXPECT_DOUBLE_EQ(expected_tokens(acceptance, 1), 1.8);
    EXPECT_DOUBLE_EQ(expected_tokens(acceptance, 2), 1.8 + 0.4);
    EXPECT_DOUBLE_EQ(expected_tokens(acceptance, 3), 1.8 + 0.4 + 0.1);
    EXPECT_DOUBLE_EQ(expected_tokens(acceptance, 4), 1.8 + 0.4 + 0.1 + 0.025);
}

TEST(VarianceOfTokens, IsThatOfTheNumberOfAcceptedDrafts) {
    EXPECT_DOUBLE_EQ(variance_of_tokens({.rest = 0.3}, 1), 0.3 * 0.7);
    // 0, 1 and 2 with the probabilities 1/2, 1/4 and 1/4.
    EXPECT_DOUBLE_EQ(variance_of_tokens({.rest = 0.5}, 2), 0.25 + 4 * 0.25 - 0.75 * 0.75);
    for (const double certain : {0.0, 1.0}) {
        EXPECT_EQ(variance_of_tokens({.rest = certain}, 7), 0);
    }
    EXPECT_EQ(variance_of_tokens({.rest = 0.5}, 0), 0);
}

TEST(RoundCost, IsDraftsAndTheVerificationOfAllOfThem) {
    const RoundCost cost{.draft_step_ms = 2, .verify_ms = {10, 11, 13}};
    EXPECT_EQ(cost.max_length(), 2);
    EXPECT_DOUBLE_EQ(cost.round_ms(0), 10);
    EXPECT_DOUBLE_EQ(cost.round_ms(1), 13);
    EXPECT_DOUBLE_EQ(cost.round_ms(2), 17);
    EXPECT_DOUBLE_EQ(tokens_per_ms({.rest = 0.5}, cost, 2), 1.75 / 17);
}

TEST(BestLength, WeighsTheTokensOfARoundAgainstItsTime) {
    // Speeds: 1 / 10, 1.8 / 12, 2.44 / 15, 2.952 / 30.
    const RoundCost cost{.draft_step_ms = 1, .verify_ms = {10, 11, 13, 27}};
    const auto best = best_length({.rest = 0.8}, cost, {.first = 0, .last = 3});
    ASSERT_TRUE(best);
    EXPECT_EQ(best->draft_length, 2);
    EXPECT_DOUBLE_EQ(best->tokens_per_ms, 2.44 / 15);
}

TEST(BestLength, IsTheShortestOfEqualOnes) {
    // One token per ms at every length.
    const RoundCost cost{.draft_step_ms = 1, .verify_ms = flat_verify(1, 5)};
    EXPECT_EQ(best_length({.rest = 1}, cost, {.first = 0, .last = 5})->draft_length, 0);
    EXPECT_EQ(best_length({.rest = 1}, cost, {.first = 2, .last = 5})->draft_length, 2);
}

TEST(BestLength, StaysWithinTheRangeAndTheKnownVerifications) {
    const RoundCost cost{.draft_step_ms = 0, .verify_ms = flat_verify(1, 6)};
    const AcceptanceByDepth sure{.rest = 1};
    EXPECT_EQ(best_length(sure, cost, {.first = 0, .last = 4})->draft_length, 4);
    EXPECT_EQ(best_length(sure, cost, {.first = 0, .last = 40})->draft_length, 6);
    EXPECT_EQ(best_length({.rest = 0}, cost, {.first = 1, .last = 4})->draft_length, 1);
    EXPECT_FALSE(best_length(sure, cost, {.first = 7, .last = 9}));
    EXPECT_FALSE(best_length(sure, {}, {.first = 0, .last = 9}));
}

TEST(BestLength, IgnoresLengthsWithoutASpeed) {
    const RoundCost cost{.draft_step_ms = 1, .verify_ms = {kNaN, 1, kNaN}};
    EXPECT_EQ(best_length({.rest = 1}, cost, {.first = 0, .last = 2})->draft_length, 1);
    const RoundCost unknown{.verify_ms = {kNaN, kNaN}};
    EXPECT_FALSE(best_length({.rest = 1}, unknown, {.first = 0, .last = 1}));
}

// A row of the TPT table (docs/methods.md, "Worked examples"): a plan of 32 layers that runs this
// many attentions and MLPs.
struct PublishedTpt {
    int n_attention;
    int n_mlp;
    double alpha;
    double at_five;
    std::optional<int> best_length;  // nullopt: every length is equally good
    double best;
    double speedup;
};

const std::vector<PublishedTpt> kPublishedTpt = {
    {32, 32, 1.00, 0.01563845, std::nullopt, 0.01563845, 1.0000},
    {20, 28, 0.95, 0.01861794, 3, 0.01889691, 1.2084},
    {16, 26, 0.90, 0.01875681, 3, 0.01959964, 1.2533},
    {12, 24, 0.80, 0.01715611, 2, 0.01961672, 1.2544},
    {16, 26, 0.00, 0.00400308, 0, 0.01563845, 1.0000},
};

constexpr KindTimes kPublishedTimes{.attention_ms = 1.478280, .mlp_ms = 0.52};

ModulePlan plan_running(int n_attention, int n_mlp) {
    ModulePlan plan(32);
    for (int layer = n_attention; layer < 32; ++layer) {
        plan.set(layer, Module::attention, Level::skip);
    }
    for (int layer = n_mlp; layer < 32; ++layer) {
        plan.set(layer, Module::mlp, Level::skip);
    }
    return plan;
}

RatedPlan rated(const PublishedTpt& row) {
    return {
        .acceptance = {.rest = row.alpha},
        .cost = paper_round_cost(plan_running(row.n_attention, row.n_mlp), kPublishedTimes, 17),
    };
}

TEST(PaperThroughput, FollowsThePublishedVectors) {
    for (const PublishedTpt& row : kPublishedTpt) {
        const auto [acceptance, cost] = rated(row);
        EXPECT_NEAR(tokens_per_ms(acceptance, cost, 5), row.at_five, 5e-9);
        const auto best = best_length(acceptance, cost, kOfficialLengths);
        ASSERT_TRUE(best);
        EXPECT_EQ(best->draft_length, row.best_length.value_or(best->draft_length));
        EXPECT_NEAR(best->tokens_per_ms, row.best, 5e-9);
        EXPECT_NEAR(best->tokens_per_ms / tokens_per_ms(acceptance, cost, 0), row.speedup, 5e-5);
    }
}

TEST(PaperThroughput, OfTheWholeModelEqualsPlainDecodingAtEveryLength) {
    const auto [acceptance, cost] = rated(kPublishedTpt.front());
    for (int length = 0; length <= 17; ++length) {
        EXPECT_NEAR(tokens_per_ms(acceptance, cost, length), 0.01563845, 5e-9);
    }
}

TEST(PaperThroughput, RaisesTimesThatAreNotPositive) {
    const RoundCost cost = paper_round_cost(ModulePlan(2), {.attention_ms = -1, .mlp_ms = 0.5}, 3);
    EXPECT_DOUBLE_EQ(cost.draft_step_ms, 2 * (0.5 + kMinModuleMs));
    EXPECT_DOUBLE_EQ(cost.verify_ms[3], 2 * (0.5 + kMinModuleMs));
}

TEST(ChoosePlan, TakesTheHighestThroughput) {
    const std::vector<RatedPlan> plans = {rated(kPublishedTpt[0]), rated(kPublishedTpt[1]),
                                          rated(kPublishedTpt[3]), rated(kPublishedTpt[2])};
    const auto choice = choose_plan(plans, {});
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->candidate, 2);
    EXPECT_EQ(choice->best.draft_length, 2);
    EXPECT_NEAR(choice->best.tokens_per_ms, 0.01961672, 5e-9);
}

TEST(ChoosePlan, TakesTheFirstOfEqualCandidates) {
    const std::vector<RatedPlan> plans(3, rated(kPublishedTpt[1]));
    EXPECT_EQ(choose_plan(plans, {.passes_over_first = false})->candidate, 0);
    EXPECT_EQ(choose_plan(plans, {.passes_over_first = true})->candidate, 1);
}

TEST(ChoosePlan, PublishedCodeIgnoresTheFirstCandidate) {
    const std::vector<RatedPlan> plans = {rated(kPublishedTpt[2]), rated(kPublishedTpt[1])};
    EXPECT_EQ(choose_plan(plans, {})->candidate, 1);
    EXPECT_EQ(choose_plan(plans, {.passes_over_first = false})->candidate, 0);
}

TEST(ChoosePlan, OnlyCandidateIsChosenWithItsOwnThroughput) {
    const std::vector<RatedPlan> plans = {rated(kPublishedTpt[2])};
    const auto choice = choose_plan(plans, {});
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->candidate, 0);
    EXPECT_NEAR(choice->best.tokens_per_ms, 0.01959964, 5e-9);
}

TEST(ChoosePlan, RangeDecidesWhetherNotSpeculatingIsAllowed) {
    const std::vector<RatedPlan> plans = {rated(kPublishedTpt[4])};
    EXPECT_EQ(choose_plan(plans, {.lengths = kOfficialLengths})->best.draft_length, 0);
    EXPECT_EQ(choose_plan(plans, {.lengths = kPaperLengths})->best.draft_length, 1);
    std::vector<RatedPlan> sure = plans;
    sure[0].acceptance.rest = 1;
    EXPECT_EQ(choose_plan(sure, {.lengths = kOfficialLengths})->best.draft_length, 17);
    EXPECT_EQ(choose_plan(sure, {.lengths = kPaperLengths})->best.draft_length, 10);
}

TEST(ChoosePlan, ChoosesNothingWithoutCandidates) {
    EXPECT_FALSE(choose_plan({}, {}));
    EXPECT_FALSE(choose_plan(std::vector<RatedPlan>(2), {}));
}

TEST(ChoosePlan, CandidateWithoutASpeedIsNotChosen) {
    std::vector<RatedPlan> plans = {rated(kPublishedTpt[1]), rated(kPublishedTpt[1])};
    plans[0].cost.draft_step_ms = kNaN;
    EXPECT_EQ(choose_plan(plans, {.passes_over_first = false})->candidate, 1);
}

TEST(ShrunkAcceptance, IsCloseToThePriorWithFewRows) {
    const AcceptancePrior prior = prior_of(0.75, 8);
    EXPECT_DOUBLE_EQ(prior.accepted, 6);
    EXPECT_DOUBLE_EQ(prior.rejected, 2);
    EXPECT_DOUBLE_EQ(shrunk_acceptance(0, 0, prior), 0.75);
    EXPECT_DOUBLE_EQ(shrunk_acceptance(8, 8, prior), 14.0 / 16);
    EXPECT_DOUBLE_EQ(shrunk_acceptance(2, 8, prior), 8.0 / 16);
}

TEST(ShrunkAcceptance, IsTheMeasuredShareWithoutAPrior) {
    EXPECT_DOUBLE_EQ(shrunk_acceptance(3, 4, {}), 0.75);
    EXPECT_DOUBLE_EQ(shrunk_acceptance(0, 0, {}), 0);
}

// The predicted speedup at the best length up to 10, as printed in docs/methods.md, "When
// speculation pays".
TEST(SpeedupBound, FollowsThePublishedTable) {
    struct Row {
        double rho;
        std::vector<double> bounds;  // at an acceptance of .90, .95 and .98
    };
    const std::vector<Row> table = {{0.5, {1.38, 1.51, 1.66}},
                                    {0.6, {1.23, 1.33, 1.43}},
                                    {0.7, {1.13, 1.20, 1.27}},
                                    {0.8, {1.06, 1.10, 1.14}}};
    const std::vector<double> alphas = {0.90, 0.95, 0.98};
    for (const Row& row : table) {
        for (std::size_t i = 0; i < alphas.size(); ++i) {
            EXPECT_NEAR(test::speedup_bound({.rest = alphas[i]}, row.rho, flat_verify(1, 10)),
                        row.bounds[i], 0.0055);
        }
    }
}

TEST(SpeedupBound, IsAboveOneOnlyWhereAcceptanceIsAboveTheCostOfADraft) {
    for (int rho = 5; rho < 100; rho += 10) {
        for (int alpha = 0; alpha <= 100; alpha += 10) {
            const double bound =
                test::speedup_bound({.rest = alpha / 100.0}, rho / 100.0, flat_verify(1, 10));
            EXPECT_EQ(bound > 1, alpha > rho) << alpha << " " << rho;
            EXPECT_GE(bound, 1);
        }
    }
}

TEST(SpeedupBound, FallsWithThePriceOfVerifiedRows) {
    // Lengths 0, 1 and 2: 1 / 1, 1.9 / (0.25 + 1.5), 2.71 / (0.5 + 2).
    const std::vector<double> verify = {1.0, 1.5, 2.0};
    EXPECT_DOUBLE_EQ(test::speedup_bound({.rest = 0.9}, 0.25, verify), 1.9 / 1.75);
    EXPECT_DOUBLE_EQ(test::speedup_bound({.first = {0.9}, .rest = 0.1}, 0.25, verify), 1.9 / 1.75);
    EXPECT_FALSE(best_length({.rest = 0.9}, {.draft_step_ms = 0.25}, {.first = 0, .last = 10}))
        << "no length has a price";
}

}  // namespace
}  // namespace knap::throughput_test
