#include "search/cost/cost_tracker.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "search/cost/probes.h"
#include "support/fake_machine.h"

namespace knap::cost_tracker_test {
namespace {

constexpr int kContext = 2000;

class CostTrackerTest : public testing::Test {
  protected:
    static CostModel make_model() {
        const test::FakeMachine machine = test::plain_machine(10);
        return CostModel(machine.profile(profile_probes(machine.layer_classes, 8192, 16)));
    }

    // Observes `n_times` verifications that take `ratio` times the predicted time.
    void verify(int n_rows, double ratio, int n_times) {
        for (int i = 0; i < n_times; ++i) {
            tracker_.observe_verify(n_rows, kContext, ratio * model_.verify_ms(n_rows, kContext));
        }
    }

    double verify_factor(int n_rows) const {
        return tracker_.verify_ms(n_rows, kContext) / model_.verify_ms(n_rows, kContext);
    }

    double draft_factor() const {
        return tracker_.draft_step_ms(plan_, kContext) / model_.draft_step_ms(plan_, kContext);
    }

    const CostModel model_ = make_model();
    const ModulePlan plan_ = uniform_window_plan(10, {.sinks = 16, .recent = 64});
    CostTracker tracker_{model_};
};

TEST_F(CostTrackerTest, StartsWithTheModel) {
    EXPECT_EQ(tracker_.verify_ms(4, kContext), model_.verify_ms(4, kContext));
    EXPECT_EQ(tracker_.plain_step_ms(kContext), model_.plain_step_ms(kContext));
    EXPECT_EQ(tracker_.draft_step_ms(plan_, kContext), model_.draft_step_ms(plan_, kContext));
    EXPECT_EQ(tracker_.draft_pass_ms(plan_, kContext, 5), model_.pass_ms(plan_, kContext, 5));
}

TEST_F(CostTrackerTest, OtherSessionsAreInEveryVerification) {
    tracker_.set_others({.n_rows = 5.4, .n_tokens = 3});
    const RoundCost round = tracker_.round_cost(kContext, 4);
    for (int length = 0; length <= 4; ++length) {
        EXPECT_EQ(round.verify_ms[static_cast<std::size_t>(length)],
                  model_.verify_ms(6 + length, kContext));
    }
    EXPECT_EQ(round.n_other_tokens, 3);
    EXPECT_EQ(tracker_.round_cost(plan_, kContext, 4).verify_ms, round.verify_ms);
    EXPECT_EQ(tracker_.round_cost(plan_, kContext, 4).n_other_tokens, 3);
    EXPECT_DOUBLE_EQ(tracker_.plain_tokens_per_ms(kContext), 4 / model_.verify_ms(6, kContext));
    EXPECT_EQ(tracker_.plain_step_ms(kContext), model_.plain_step_ms(kContext)) << "alone";
}

// The verification of an early exit shares no pass: the others have one of their own.
TEST_F(CostTrackerTest, ExactLeadingLayersLeaveOthersAPassOfTheirOwn) {
    const ModulePlan early = early_exit_plan(10, 5);
    const RoundCost alone = tracker_.round_cost(early, kContext, 3);
    tracker_.set_others({.n_rows = 5, .n_tokens = 5});
    const RoundCost shared = tracker_.round_cost(early, kContext, 3);
    EXPECT_DOUBLE_EQ(shared.verify_ms[2], alone.verify_ms[2] + model_.verify_ms(5, kContext));
}

TEST_F(CostTrackerTest, FollowsDrafts) {
    for (int i = 0; i < 100; ++i) {
        tracker_.observe_draft(plan_, kContext, 4, 4 * 1.5 * model_.draft_step_ms(plan_, kContext));
    }
    EXPECT_NEAR(draft_factor(), 1.5, 0.05);
    EXPECT_EQ(verify_factor(1), 1);
    EXPECT_NEAR(tracker_.draft_pass_ms(plan_, kContext, 5),
                draft_factor() * model_.pass_ms(plan_, kContext, 5), 1e-9);
}

TEST_F(CostTrackerTest, FollowsAMachineThatIsSlowerAtEverything) {
    for (int i = 0; i < 40; ++i) {
        for (const int n_rows : {1, 2, 4, 7}) {
            verify(n_rows, 1.4, 1);
        }
    }
    for (const int n_rows : {1, 2, 4, 7}) {
        EXPECT_NEAR(verify_factor(n_rows), 1.4, 0.02);
    }
    EXPECT_GT(verify_factor(5), 1.2);  // never observed
    EXPECT_EQ(draft_factor(), 1);
}

TEST_F(CostTrackerTest, CorrectsOneNumberOfRowsWithoutSpoilingOthers) {
    for (int i = 0; i < 50; ++i) {
        verify(1, 1.0, 1);
        verify(4, 2.0, 1);
    }
    EXPECT_NEAR(verify_factor(4), 2, 0.1);
    EXPECT_NEAR(verify_factor(1), 1, 0.02);
}

TEST_F(CostTrackerTest, OtherRowsHardlyAffectPlainSteps) {
    verify(4, 2.0, 100);
    EXPECT_NEAR(verify_factor(4), 2, 0.1);
    EXPECT_LT(verify_factor(1), 1.25);
}

TEST_F(CostTrackerTest, CorrectsPassesOfDraftsByTheirRowsToo) {
    for (int i = 0; i < 50; ++i) {
        verify(1, 1.0, 1);
        verify(4, 2.0, 1);
    }
    EXPECT_NEAR(tracker_.draft_pass_ms(plan_, kContext, 4), 2 * model_.pass_ms(plan_, kContext, 4),
                0.1 * model_.pass_ms(plan_, kContext, 4));
    EXPECT_DOUBLE_EQ(tracker_.draft_pass_ms(plan_, kContext, 1),
                     tracker_.draft_step_ms(plan_, kContext));
}

TEST_F(CostTrackerTest, FollowsAChangeOfTheMachine) {
    verify(1, 1.5, 100);
    verify(1, 0.8, 100);
    EXPECT_NEAR(verify_factor(1), 0.8, 0.05);
}

TEST_F(CostTrackerTest, AveragesNoise) {
    std::mt19937 engine(1);
    std::uniform_real_distribution<double> noise(0.8, 1.25);
    for (int i = 0; i < 200; ++i) {
        verify(3, noise(engine), 1);
    }
    EXPECT_NEAR(verify_factor(3), 1, 0.1);
}

TEST_F(CostTrackerTest, IgnoresImplausibleTimes) {
    const double expected = model_.verify_ms(1, kContext);
    for (const double ms :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.0,
          -5.0, 100 * expected, expected / 100}) {
        tracker_.observe_verify(1, kContext, ms);
        tracker_.observe_draft(plan_, kContext, 1, ms);
    }
    tracker_.observe_draft(plan_, kContext, 0, expected);
    EXPECT_EQ(verify_factor(1), 1);
    EXPECT_EQ(draft_factor(), 1);
}

TEST_F(CostTrackerTest, OneTimeHasLittleEffect) {
    verify(1, 1.0, 30);
    verify(1, 7.5, 1);
    EXPECT_GT(verify_factor(1), 1);
    EXPECT_LT(verify_factor(1), 1.06);
}

TEST_F(CostTrackerTest, ForgetsWhatWasSeenLongAgo) {
    verify(1, 1.0, 20);
    verify(4, 1.6, 10);
    const double soon = verify_factor(1);
    verify(4, 1.6, 300);
    EXPECT_GT(verify_factor(1), soon + 0.01);
}

TEST_F(CostTrackerTest, PricesRoundsByTheirRows) {
    verify(1, 1.0, 20);
    verify(4, 2.0, 20);
    tracker_.observe_draft(plan_, kContext, 1, 1.5 * model_.draft_step_ms(plan_, kContext));
    const RoundCost cost = tracker_.round_cost(plan_, kContext, 6);
    ASSERT_EQ(cost.max_length(), 6);
    EXPECT_DOUBLE_EQ(cost.draft_step_ms, tracker_.draft_step_ms(plan_, kContext));
    for (int length = 0; length <= 6; ++length) {
        EXPECT_DOUBLE_EQ(cost.verify_ms[static_cast<std::size_t>(length)],
                         tracker_.verify_ms(length + 1, kContext));
    }
}

}  // namespace
}  // namespace knap::cost_tracker_test
