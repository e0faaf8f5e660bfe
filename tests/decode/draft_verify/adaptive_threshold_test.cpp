#include "decode/draft_verify/adaptive_threshold.h"

#include <gtest/gtest.h>

namespace knap::adaptive_threshold_test {
namespace {

constexpr double kRounding = 1e-6;  // options are floats

// The exit confidence of the next draft.
float value_of(const AdaptiveThreshold& threshold) {
    return threshold.stop_rule(1).exit_confidence;
}

struct TraceRound {
    int n_accepted;
    int n_drafted;
    double threshold;  // afterwards
};

void expect_trace(AdaptiveThreshold& threshold, std::initializer_list<TraceRound> rounds) {
    int number = 0;
    for (const TraceRound& round : rounds) {
        ++number;
        threshold.observe(round.n_accepted, round.n_drafted);
        EXPECT_NEAR(value_of(threshold), round.threshold, kRounding) << "round " << number;
    }
}

// Computed by hand (docs/methods.md, "Adaptive threshold"): AR starts at 0 and moves half of the
// way to each round's acceptance; the threshold moves by a tenth of 0.01.
TEST(AdaptiveThreshold, FollowsTheRecurrence) {
    AdaptiveThreshold threshold({.cap = 4});
    EXPECT_NEAR(value_of(threshold), 0.6, kRounding);
    expect_trace(threshold, {
                                {4, 4, 0.601},   // AR 0.5
                                {4, 4, 0.602},   // AR 0.75
                                {4, 4, 0.603},   // AR 0.875
                                {4, 4, 0.603},   // AR 0.9375, but the draft reached the cap
                                {3, 3, 0.602},   // AR 0.96875
                                {0, 2, 0.603},   // AR 0.484375
                                {1, 2, 0.604},   // AR 0.4921875
                                {12, 12, 0.605}  // AR 0.74609375
                            });
}

TEST(AdaptiveThreshold, EverySettingHasAnEffect) {
    AdaptiveThreshold threshold({.cap = 2,
                                 .target = 0.5f,
                                 .step = 0.2f,
                                 .start = 0.25f,
                                 .acceptance_memory = 0.75f,
                                 .threshold_memory = 0.5f});
    expect_trace(threshold, {
                                {1, 1, 0.35},  // AR 0.25: up by half of 0.2
                                {1, 1, 0.45},  // AR 0.4375
                                {2, 2, 0.45},  // AR 0.578125, at the cap
                                {1, 1, 0.35},  // AR 0.68359375
                                {0, 1, 0.25},  // AR 0.5126953125: still enough
                                {0, 2, 0.35},  // AR 0.384521484375
                            });
}

TEST(AdaptiveThreshold, AcceptanceAtTheTargetIsEnough) {
    AdaptiveThreshold threshold({.target = 0.5f});
    expect_trace(threshold, {{1, 1, 0.599}});  // AR 0.5
}

TEST(AdaptiveThreshold, RoundWithoutADraftChangesNothing) {
    AdaptiveThreshold threshold({.cap = 4});
    expect_trace(threshold, {{0, 0, 0.6}, {4, 4, 0.601}, {0, 0, 0.601}, {4, 4, 0.602}});
}

TEST(AdaptiveThreshold, StaysAProbability) {
    const ThresholdOptions large_steps{.step = 1, .threshold_memory = 0};
    AdaptiveThreshold rising(large_steps);
    expect_trace(rising, {{0, 1, 1}, {0, 1, 1}});
    AdaptiveThreshold falling({.target = 0, .step = 1, .threshold_memory = 0});
    expect_trace(falling, {{1, 1, 0}, {1, 1, 0}});
}

TEST(AdaptiveThreshold, StopsDraftsAtItsValueAndTheCap) {
    AdaptiveThreshold threshold({.cap = 5, .start = 0.25f});
    for (const int n_room : {1, 4, 5, 9}) {
        const StopRule rule = threshold.stop_rule(n_room);
        EXPECT_EQ(rule.n_max, std::min(5, n_room));
        EXPECT_EQ(rule.exit_confidence, 0.25f);
        EXPECT_EQ(rule.confidence_of, ConfidenceOf::drafted);
        EXPECT_FALSE(rule.marginal.has_value());
    }
}

}  // namespace
}  // namespace knap::adaptive_threshold_test
