#include "decode/knapspec/cost_learner.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "decode/learned/learned.h"
#include "search/cost/probes.h"
#include "support/fake_machine.h"
#include "support/strategy_rig.h"

namespace knap::test::cost_learner_test {
namespace {

// Times passes without running them, and remembers which.
struct FakeClock {
    FakeMachine machine = plain_machine(4);
    bool is_busy = false;
    double slowdown = 1;
    std::vector<Probe> measured{};

    MeasurePass measure() {
        return [this](const Probe& probe) {
            measured.push_back(probe);
            return PassTime{.ms = slowdown * machine.ms(probe), .was_disturbed = is_busy};
        };
    }
};

// Steps of plain decoding, enough to start from.
void observe_steps(CostLearner& learner, bool was_disturbed = false) {
    for (int i = 0; i < 6; ++i) {
        learner.observe_verify(1, 200, {.ms = 10, .was_disturbed = was_disturbed});
    }
}

void give_profile(StrategyRig& rig) {
    const FakeMachine machine = plain_machine(4);
    rig.profile = machine.profile(profile_probes(machine.layer_classes, 1024, 8));
}

TEST(CostLearner, StartsWithTheCostsOfAProfile) {
    StrategyRig rig;
    give_profile(rig);
    const CostLearner learner(rig.parts());
    ASSERT_NE(learner.costs(), nullptr);
    EXPECT_TRUE(learner.knows_rows());
}

TEST(CostLearner, StartsFromTheMedianOfThreeSteps) {
    StrategyRig rig;
    CostLearner learner(rig.parts());
    for (const double ms : {100.0, std::numeric_limits<double>::quiet_NaN(), -3.0, 10.0}) {
        learner.observe_verify(1, 200, {.ms = ms});
        EXPECT_EQ(learner.costs(), nullptr);
    }
    learner.observe_verify(1, 200, {.ms = 12});
    ASSERT_NE(learner.costs(), nullptr);
    EXPECT_NEAR(learner.costs()->plain_step_ms(200), 12, 0.5);
    EXPECT_FALSE(learner.knows_rows());
}

TEST(CostLearner, RoundOfSeveralRowsShowsTheCostOfRows) {
    StrategyRig rig;
    CostLearner learner(rig.parts());
    observe_steps(learner);
    learner.observe_verify(4, 200, {.ms = 20});
    EXPECT_TRUE(learner.knows_rows());
    EXPECT_NEAR(learner.costs()->verify_ms(4, 200), 20, 1);
}

TEST(CostLearner, MeasuresWithinTheBudget) {
    StrategyRig rig;
    rig.rig.feed(random_tokens(64, 256, 1));
    CostLearner learner(rig.parts());
    EXPECT_EQ(learner.learn(64, 1e9), 0) << "not before plain steps are known";
    for (int i = 0; i < 3; ++i) {
        learner.observe_verify(1, 64, {.ms = 10});
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

// Where the machine is never quiet, one pass that took long would keep drafts away for good.
TEST(CostLearner, DoubtsRowsUntilSeveralDisturbedPassesHaveShownThem) {
    StrategyRig rig;
    CostLearner learner(rig.parts());
    observe_steps(learner, true);
    EXPECT_FALSE(learner.doubts_rows()) << "it does not know them at all";
    for (const double ms : {400.0, 25.0, 90.0}) {
        learner.observe_verify(4, 200, {.ms = ms, .was_disturbed = true});
        EXPECT_TRUE(learner.knows_rows());
        EXPECT_TRUE(learner.doubts_rows()) << ms;
    }
    EXPECT_NEAR(learner.costs()->verify_ms(4, 200), 25, 1) << "the shortest";
    learner.observe_verify(4, 200, {.ms = 70, .was_disturbed = true});
    EXPECT_FALSE(learner.doubts_rows());
}

TEST(CostLearner, DoesNotDoubtRowsThatAQuietPassHasShown) {
    StrategyRig rig;
    CostLearner learner(rig.parts());
    observe_steps(learner);
    learner.observe_verify(4, 200, {.ms = 400, .was_disturbed = true});
    EXPECT_TRUE(learner.doubts_rows());
    learner.observe_verify(4, 200, {.ms = 20});
    EXPECT_FALSE(learner.doubts_rows());
    EXPECT_NEAR(learner.costs()->verify_ms(4, 200), 20, 1);
}

TEST(CostLearner, BelievesDisturbedTimesThatAreShorterThanExpected) {
    StrategyRig rig;
    rig.rig.feed(random_tokens(64, 256, 1));
    FakeClock clock{.is_busy = true};
    CostProfile dear = clock.machine.profile(profile_probes(clock.machine.layer_classes, 1024, 8));
    for (CostSample& sample : dear.samples) {
        sample.ms *= sample.n_rows > 1 ? 3 : 1;
    }
    rig.profile = dear;
    StrategyParts parts = rig.parts();
    parts.measure = clock.measure();
    CostLearner learner(parts);
    const double before = learner.costs()->verify_ms(4, 64);
    while (learner.learn(64, 1e9) > 0) {
    }
    const double after = learner.costs()->verify_ms(4, 64);
    EXPECT_LT(after, 0.8 * before);
    clock.slowdown = 50;
    for (int i = 0; i < 200; ++i) {
        learner.learn(64, 1e9);
    }
    EXPECT_EQ(learner.costs()->verify_ms(4, 64), after) << "longer ones say nothing";
}

// A profile of a busy machine, on which more rows are dear, does not keep drafts away for good.
TEST(CostLearner, MeasuresAgainWhatAProfileSaysAndBelievesIt) {
    StrategyRig rig;
    rig.rig.feed(random_tokens(64, 256, 1));
    give_profile(rig);
    CostLearner learner(rig.parts());
    EXPECT_EQ(learner.learn(64, 1), 0) << "would take more than a small part of the budget";
    int n_passes = 0;
    while (learner.learn(64, 1e9) > 0) {
        ASSERT_LT(++n_passes, 20) << "then there is a pause";
    }
    EXPECT_EQ(n_passes, 6);
    int n_calls = 1;
    while (learner.learn(64, 1e9) == 0) {
        ASSERT_LT(++n_calls, 1000) << "now and then";
    }
    EXPECT_GT(n_calls, 30);
}

// A server asks every few seconds, for as long as nobody uses it.
TEST(CostLearner, RestsWhileItIsIdle) {
    StrategyRig rig;
    rig.rig.feed(random_tokens(64, 256, 1));
    give_profile(rig);
    CostLearner learner(rig.parts());
    int n_passes = 0;
    while (learner.use_idle_time(64) > 0) {
        ASSERT_LT(++n_passes, 20);
    }
    EXPECT_EQ(n_passes, 6);
    for (int i = 0; i < 200; ++i) {
        ASSERT_EQ(learner.use_idle_time(64), 0) << i << " calls later";
    }
    for (int i = 0; i < 64; ++i) {
        learner.learn(64, 0);
    }
    EXPECT_GT(learner.use_idle_time(64), 0) << "after 512 more rounds";
}

TEST(CostLearner, RoundsOfEarlierRunsCorrectAProfile) {
    StrategyRig rig;
    give_profile(rig);
    const double before = CostLearner(rig.parts()).costs()->verify_ms(4, 300);
    Learned known;
    const CostSample rounds{
        .plan = ModulePlan(4), .n_context = 300, .n_rows = 4, .ms = 0.6 * before, .n_measured = 8};
    known.add_cost(rounds);
    StrategyParts parts = rig.parts();
    parts.known = &known;
    EXPECT_LT(CostLearner(parts).costs()->verify_ms(4, 300), 0.8 * before);

    Learned of_busy_machine;
    CostSample disturbed = rounds;
    disturbed.was_busy = true;
    of_busy_machine.add_cost(disturbed);
    parts.known = &of_busy_machine;
    EXPECT_EQ(CostLearner(parts).costs()->verify_ms(4, 300), before);
}

TEST(CostLearner, NotesTheTimesOfRoundsForLaterRuns) {
    StrategyRig rig;
    give_profile(rig);
    Learned notes;
    StrategyParts parts = rig.parts();
    parts.notes = &notes;
    CostLearner learner(parts);
    const double true_ms = 0.7 * learner.costs()->verify_ms(3, 300);
    for (int i = 0; i < 15; ++i) {
        learner.observe_verify(3, 300, {.ms = true_ms});
    }
    EXPECT_TRUE(notes.costs.empty());
    for (int i = 0; i < 49; ++i) {
        learner.observe_verify(3, 300, {.ms = true_ms});
    }
    ASSERT_EQ(notes.costs.size(), 1u);
    EXPECT_EQ(notes.costs[0].sample.n_rows, 3);
    EXPECT_NEAR(notes.costs[0].sample.ms / true_ms, 1, 0.1);
}

PassTime disturbed(double ms) {
    return {.ms = ms, .was_disturbed = true};
}

TEST(CostLearner, LaterRunsAreNotToldOfDisturbedRounds) {
    StrategyRig rig;
    give_profile(rig);
    Learned notes;
    StrategyParts parts = rig.parts();
    parts.notes = &notes;
    CostLearner learner(parts);
    const double true_ms = learner.costs()->verify_ms(3, 300);
    for (int i = 0; i < 100; ++i) {
        learner.observe_verify(3, 300, disturbed(3 * true_ms));
    }
    EXPECT_TRUE(notes.costs.empty());
    EXPECT_GT(learner.costs()->verify_ms(3, 300), 2 * true_ms) << "they are the times of now";
    for (int i = 0; i < 15; ++i) {
        learner.observe_verify(3, 300, {.ms = true_ms});
        learner.observe_verify(3, 300, disturbed(3 * true_ms));
    }
    EXPECT_TRUE(notes.costs.empty());
    learner.observe_verify(3, 300, {.ms = true_ms});
    ASSERT_EQ(notes.costs.size(), 1u);
    EXPECT_NEAR(notes.costs[0].sample.ms / true_ms, 1, 0.01);
    EXPECT_FALSE(notes.costs[0].sample.was_busy);
}

TEST(CostLearner, FirstStepsOfABusyMachineAreMarked) {
    StrategyRig rig;
    Learned notes;
    StrategyParts parts = rig.parts();
    parts.notes = &notes;
    CostLearner quiet(parts);
    for (const double ms : {30.0, 12.0, 30.0, 12.0}) {
        quiet.observe_verify(1, 200, {.ms = ms, .was_disturbed = ms > 20});
    }
    EXPECT_EQ(quiet.costs(), nullptr) << "two undisturbed steps";
    quiet.observe_verify(1, 200, {.ms = 12});
    ASSERT_NE(quiet.costs(), nullptr);
    EXPECT_NEAR(quiet.costs()->plain_step_ms(200), 12, 0.5);
    ASSERT_EQ(notes.costs.size(), 1u);
    EXPECT_FALSE(notes.costs[0].sample.was_busy);

    notes = {};
    CostLearner busy(parts);
    for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(busy.costs(), nullptr);
        busy.observe_verify(1, 200, disturbed(30));
    }
    ASSERT_NE(busy.costs(), nullptr) << "such a machine drafts, too";
    ASSERT_EQ(notes.costs.size(), 1u);
    EXPECT_TRUE(notes.costs[0].sample.was_busy);
}

TEST(CostLearner, MeasuresOnlyWhatAPartialProfileLacks) {
    StrategyRig rig;
    rig.rig.feed(random_tokens(64, 256, 1));
    rig.profile.is_partial = true;
    const auto probes = first_probes(rig.profile.layer_classes, 64, 8);
    const FakeMachine machine = plain_machine(4);
    for (std::size_t i = 0; i < 3; ++i) {
        rig.profile.samples.push_back(machine.sample(probes[i]));
    }
    Learned notes;
    StrategyParts parts = rig.parts();
    parts.notes = &notes;
    CostLearner learner(parts);
    EXPECT_TRUE(learner.knows_rows()) << "from earlier runs";
    while (learner.learn(64, 1e9) > 0) {
    }
    for (const Learned::Cost& cost : notes.costs) {
        EXPECT_FALSE(
            cost.sample.plan.is_full() && cost.sample.has_head &&
            (cost.sample.n_rows == 1 || cost.sample.n_rows == 4 || cost.sample.n_rows == 8));
    }
    EXPECT_EQ(notes.costs.size(), probes.size() - 3);
}

// What earlier runs measured on a busy machine is measured again, until the machine is quiet.
TEST(CostLearner, MeasuresAgainWhatABusyMachineMade) {
    StrategyRig rig;
    FakeClock clock;
    rig.profile.is_partial = true;
    for (const Probe& probe : first_probes(rig.profile.layer_classes, 64, 8)) {
        CostSample sample = clock.machine.sample(probe);
        if (probe.n_rows > 2) {
            sample.ms *= 2;
            sample.was_busy = true;
        }
        rig.profile.samples.push_back(sample);
    }
    const Probe four_rows{.plan = ModulePlan(4), .n_context = 64, .n_rows = 4};
    const double true_ms = clock.machine.ms(four_rows);
    Learned notes;
    StrategyParts parts = rig.parts();
    parts.notes = &notes;
    parts.measure = clock.measure();
    for (const bool is_busy : {true, false}) {
        clock.is_busy = is_busy;
        clock.slowdown = is_busy ? 2 : 1;
        clock.measured.clear();
        notes = {};
        CostLearner learner(parts);
        EXPECT_GT(learner.costs()->verify_ms(4, 64), 1.5 * true_ms);
        EXPECT_GT(learner.learn(64, 1e9), 0);
        EXPECT_GT(learner.learn(64, 1e9), 0);
        ASSERT_EQ(clock.measured.size(), 2u);
        EXPECT_EQ(clock.measured[0], four_rows);
        EXPECT_EQ(clock.measured[1].n_rows, 8);
        ASSERT_EQ(notes.costs.size(), 2u);
        EXPECT_EQ(notes.costs[0].sample.was_busy, is_busy);
        if (!is_busy) {
            EXPECT_NEAR(learner.costs()->verify_ms(4, 64) / true_ms, 1, 0.02);
        }
    }
}

}  // namespace
}  // namespace knap::test::cost_learner_test
