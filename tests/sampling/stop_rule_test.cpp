#include "sampling/stop_rule.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace knap::stop_rule_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Drafted {
    float confidence = 1.0f;
    bool is_end_of_text = false;
};

// How many of these tokens a rule lets be drafted, including the one that it stops at.
int drafted_length(const StopRule& rule, const std::vector<Drafted>& tokens) {
    StopState state(rule);
    if (!state.starts()) {
        return 0;
    }
    int n_drafted = 0;
    for (const Drafted& token : tokens) {
        ++n_drafted;
        if (!state.goes_on(token.confidence, token.is_end_of_text)) {
            break;
        }
    }
    return n_drafted;
}

// Bin i accepts (i + 1) / 10 of its drafts; a step costs a quarter of a plain token's time.
MarginalRule some_rule() {
    return {
        .acceptance = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0},
        .mean_acceptance = 0.5,
        .tokens_per_ms = 0.25,
        .draft_ms = 0.75,
        .verify_ms = 0.25,
    };
}

int marginal_length(const MarginalRule& rule, const std::vector<Drafted>& tokens) {
    return drafted_length({.n_max = 16, .marginal = rule}, tokens);
}

TEST(StopRule, DraftsAFixedLength) {
    const std::vector<Drafted> tokens(20);
    for (int length : {0, 1, 2, 16}) {
        EXPECT_EQ(drafted_length({.n_max = length}, tokens), length);
    }
}

TEST(StopRule, EndOfTextIsTheLastToken) {
    const std::vector<Drafted> tokens = {{}, {}, {.is_end_of_text = true}, {}, {}};
    EXPECT_EQ(drafted_length({.n_max = 5}, tokens), 3);
}

TEST(StopRule, ConfidenceExitKeepsTheTokenThatTriggersIt) {
    const std::vector<Drafted> tokens = {{0.9f}, {0.69f}, {0.9f}, {0.9f}};
    EXPECT_EQ(drafted_length({.n_max = 4, .exit_confidence = 0.7f}, tokens), 2);
}

TEST(StopRule, DraftsAtLeastOneTokenHoweverUncertain) {
    EXPECT_EQ(drafted_length({.n_max = 4, .exit_confidence = 1.0f}, {{0.0f}, {1.0f}}), 1);
}

TEST(StopRule, ConfidenceEqualToTheThresholdContinues) {
    const std::vector<Drafted> tokens(4, {0.7f});
    EXPECT_EQ(drafted_length({.n_max = 4, .exit_confidence = 0.7f}, tokens), 4);
}

TEST(StopRule, ExitAtZeroNeverStops) {
    // Confidences are not computed, so they may be any number.
    const std::vector<Drafted> tokens = {{0.0f}, {-1.0f}, {kNaN}, {0.0f}};
    EXPECT_EQ(drafted_length({.n_max = 4, .exit_confidence = 0.0f}, tokens), 4);
}

TEST(StopRule, OnlyRulesThatUseConfidencesNeedThem) {
    EXPECT_FALSE(StopRule{.n_max = 4}.needs_confidence());
    EXPECT_TRUE((StopRule{.n_max = 4, .exit_confidence = 0.1f}.needs_confidence()));
    EXPECT_TRUE((StopRule{.n_max = 4, .marginal = MarginalRule{}}.needs_confidence()));
}

TEST(MarginalRule, FollowsDecisionsComputedByHand) {
    // Continues while A * 0.5 > 0.25 * (0.75 + 0.25), that is, while A > 0.5.
    EXPECT_EQ(marginal_length(some_rule(), {{0.95f}, {0.85f}, {0.75f}, {0.45f}, {0.95f}}), 4)
        << "A: 1, 0.9, 0.72, 0.36";
    EXPECT_EQ(marginal_length(some_rule(), {{0.65f}, {0.65f}, {0.95f}}), 2) << "A: 0.7, 0.49";
    EXPECT_EQ(marginal_length(some_rule(), {{0.15f}, {0.95f}}), 1) << "A: 0.2";
}

TEST(MarginalRule, StopsWhenATokenOnlyBreaksEven) {
    EXPECT_EQ(marginal_length(some_rule(), {{0.45f}, {0.95f}}), 1) << "A: 0.5";
}

TEST(MarginalRule, DoesNotStartWhenTheFirstTokenDoesNotPay) {
    MarginalRule rule = some_rule();
    rule.mean_acceptance = 0.25;
    EXPECT_EQ(marginal_length(rule, {{0.95f}}), 0);
}

TEST(MarginalRule, CountsBothTheDraftAndTheRowThatVerifiesIt) {
    const std::vector<Drafted> tokens(16, {1.0f});
    EXPECT_EQ(marginal_length(some_rule(), tokens), 16);
    MarginalRule slow_draft = some_rule();
    slow_draft.draft_ms = 1.75;
    EXPECT_EQ(marginal_length(slow_draft, tokens), 0);
    MarginalRule slow_verify = some_rule();
    slow_verify.verify_ms = 1.25;
    EXPECT_EQ(marginal_length(slow_verify, tokens), 0);
}

TEST(MarginalRule, BinsIncludeTheirLowerEdge) {
    // Only bin 5, [0.5, 0.6), is worth continuing from.
    MarginalRule rule = some_rule();
    rule.acceptance = {};
    rule.acceptance[5] = 1.0;
    const auto goes_on = [&](float confidence) {
        return marginal_length(rule, {{confidence}, {}}) == 2;
    };
    EXPECT_TRUE(goes_on(0.5f));
    EXPECT_FALSE(goes_on(0.49999997f));
    EXPECT_TRUE(goes_on(0.59999996f));
    EXPECT_FALSE(goes_on(0.6f)) << "0.6f is a little above 0.6";
}

TEST(MarginalRule, RoundingDoesNotLiftAConfidenceIntoTheNextBin) {
    // 0.7f is a little below 0.7, but ten times that rounds to 7 in float.
    MarginalRule rule = some_rule();
    rule.acceptance = {};
    rule.acceptance[6] = 1.0;
    EXPECT_EQ(marginal_length(rule, {{0.7f}, {}}), 2);
}

TEST(MarginalRule, CertaintyBelongsToTheLastBin) {
    MarginalRule rule = some_rule();
    rule.acceptance = {};
    rule.acceptance.back() = 1.0;
    EXPECT_EQ(marginal_length(rule, {{1.0f}, {}}), 2);
}

TEST(MarginalRule, LengthAndConfidenceExitApplyAsWell) {
    const std::vector<Drafted> tokens = {{0.95f}, {0.95f}, {0.85f}, {0.95f}};
    EXPECT_EQ(drafted_length({.n_max = 2, .marginal = some_rule()}, tokens), 2);
    EXPECT_EQ(
        drafted_length({.n_max = 9, .exit_confidence = 0.9f, .marginal = some_rule()}, tokens), 3);
}

}  // namespace
}  // namespace knap::stop_rule_test
