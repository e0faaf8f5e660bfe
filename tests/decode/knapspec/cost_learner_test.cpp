#include "decode/knapspec/cost_learner.h"

#include <limits>

#include <gtest/gtest.h>

#include "search/cost/probes.h"
#include "support/fake_machine.h"
#include "support/strategy_rig.h"

namespace knap::test::cost_learner_test {
namespace {

TEST(CostLearner, StartsWithTheCostsOfAProfile) {
    StrategyRig rig;
    const FakeMachine machine = plain_machine(4);
    rig.profile = machine.profile(profile_probes(machine.layer_classes, 1024, 8));
    const CostLearner learner(rig.parts());
    ASSERT_NE(learner.costs(), nullptr);
    EXPECT_TRUE(learner.knows_rows());
}

TEST(CostLearner, StartsFromTheMedianOfThreeSteps) {
    StrategyRig rig;
    CostLearner learner(rig.parts());
    for (const double ms : {100.0, std::numeric_limits<double>::quiet_NaN(), -3.0, 10.0}) {
        learner.observe_verify(1, 200, ms);
        EXPECT_EQ(learner.costs(), nullptr);
    }
    learner.observe_verify(1, 200, 12);
    ASSERT_NE(learner.costs(), nullptr);
    EXPECT_NEAR(learner.costs()->plain_step_ms(200), 12, 0.5);
    EXPECT_FALSE(learner.knows_rows());
}

TEST(CostLearner, RoundOfSeveralRowsShowsTheCostOfRows) {
    StrategyRig rig;
    CostLearner learner(rig.parts());
    for (int i = 0; i < 3; ++i) {
        learner.observe_verify(1, 200, 10);
    }
    learner.observe_verify(4, 200, 20);
    EXPECT_TRUE(learner.knows_rows());
    EXPECT_NEAR(learner.costs()->verify_ms(4, 200), 20, 1);
}

TEST(CostLearner, MeasuresWithinTheBudget) {
    StrategyRig rig;
    rig.rig.feed(random_tokens(64, 256, 1));
    CostLearner learner(rig.parts());
    EXPECT_EQ(learner.learn(64, 1e9), 0) << "not before plain steps are known";
    for (int i = 0; i < 3; ++i) {
        learner.observe_verify(1, 64, 10);
    }
    EXPECT_EQ(learner.learn(64, 1), 0) << "a pass of several rows would cost more";
    EXPECT_FALSE(learner.knows_rows());
    EXPECT_GT(learner.learn(64, 1e9), 0);
    EXPECT_TRUE(learner.knows_rows());
    int n_passes = 1;
    while (learner.learn(64, 1e9) > 0) {
        ASSERT_LT(++n_passes, 20) << "there is an end to it";
    }
}

}  // namespace
}  // namespace knap::test::cost_learner_test
