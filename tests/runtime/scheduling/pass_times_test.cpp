#include "runtime/scheduling/pass_times.h"

#include <gtest/gtest.h>

#include "support/fake_batch_runner.h"

namespace knap::pass_times_test {
namespace {

using test::TestRun;
constexpr double kTarget = 50;

// A machine on which a pass costs a base and something for every row.
struct Machine {
    double base_ms = 10;
    double row_ms = 0.5;

    double ms(int n_rows) const { return base_ms + row_ms * n_rows; }
};

// A pass with as many rows of prompts as allowed, beside decoding rows. Returns what they add.
double add_prompt_pass(PassTimes& times, const Machine& machine, int n_decode_rows) {
    const int n_rows = times.max_prompt_rows();
    times.add({.n_decode_rows = n_decode_rows,
               .n_prompt_rows = n_rows,
               .ms = machine.ms(n_rows + n_decode_rows)});
    return machine.row_ms * n_rows;
}

TEST(PassTimes, StartsWithACautiousGuess) {
    EXPECT_EQ(PassTimes(kTarget).max_prompt_rows(), 16);
    EXPECT_EQ(PassTimes(3).max_prompt_rows(), 16);
}

TEST(PassTimes, RowsOfPromptsAddTheTargetTime) {
    const Machine machine;
    PassTimes times(kTarget);
    for (int i = 0; i < 20; ++i) {
        times.add({.n_decode_rows = 1, .ms = machine.ms(1)});
    }
    for (int i = 0; i < 12; ++i) {
        EXPECT_LE(add_prompt_pass(times, machine, 1), 1.05 * kTarget);
    }
    EXPECT_NEAR(times.max_prompt_rows() * machine.row_ms, kTarget, 0.1 * kTarget);
}

TEST(PassTimes, RowsAtMostDoubleFromPassToPass) {
    PassTimes times(kTarget);
    int n_rows = times.max_prompt_rows();
    for (int i = 0; i < 40; ++i) {
        times.add({.n_prompt_rows = 512, .ms = 0});
        EXPECT_LE(times.max_prompt_rows(), 2 * n_rows + 1);
        EXPECT_GE(times.max_prompt_rows(), n_rows);
        n_rows = times.max_prompt_rows();
    }
}

TEST(PassTimes, FollowsRowsThatGetDearerWithinAFewPasses) {
    PassTimes times(kTarget);
    times.add({.n_decode_rows = 2, .ms = 10});
    for (int i = 0; i < 12; ++i) {
        add_prompt_pass(times, {}, 2);
    }
    EXPECT_GE(times.max_prompt_rows() * Machine{}.row_ms, 0.8 * kTarget);
    const Machine dearer{.row_ms = 2};
    for (int i = 0; i < 4; ++i) {
        add_prompt_pass(times, dearer, 2);
    }
    EXPECT_LE(times.max_prompt_rows() * dearer.row_ms, 1.25 * kTarget);
    EXPECT_GE(times.max_prompt_rows() * dearer.row_ms, 0.5 * kTarget);
}

// Where a step is longer than the target, rows of a prompt still ride along.
TEST(PassTimes, TheStepOfOthersIsNotThePromptsCost) {
    const Machine machine{.base_ms = 400, .row_ms = 1};
    PassTimes times(kTarget);
    times.add({.n_decode_rows = 1, .ms = machine.ms(1)});
    for (int i = 0; i < 12; ++i) {
        add_prompt_pass(times, machine, 1);
    }
    EXPECT_NEAR(times.max_prompt_rows(), 50, 5);
}

// Draft passes are cheap, but no pass of a prompt is one.
TEST(PassTimes, StepsAreThoseOfTheWholeModel) {
    const Machine machine{.base_ms = 400, .row_ms = 1};
    PassTimes times(kTarget);
    times.add({.n_decode_rows = 1, .ms = machine.ms(1)});
    for (int i = 0; i < 12; ++i) {
        times.add({.n_decode_rows = 1, .is_whole_model = false, .ms = 20});
        add_prompt_pass(times, machine, 1);
    }
    EXPECT_NEAR(times.max_prompt_rows(), 50, 5);
}

// More sessions came, and there was no pass without a prompt since.
TEST(PassTimes, RowsBeyondAUsualStepCountAsThoseOfPrompts) {
    const Machine machine{.base_ms = 10, .row_ms = 2};
    PassTimes times(kTarget);
    times.add({.n_decode_rows = 1, .ms = machine.ms(1)});
    for (int i = 0; i < 12; ++i) {
        add_prompt_pass(times, machine, 40);
    }
    EXPECT_NEAR(times.max_prompt_rows(), 25, 3);
}

TEST(PassTimes, ShortPromptsSayLittle) {
    const Machine machine{.base_ms = 40, .row_ms = 0.5};
    PassTimes times(kTarget);
    times.add({.n_decode_rows = 1, .ms = machine.ms(1)});
    for (int i = 0; i < 12; ++i) {
        add_prompt_pass(times, machine, 1);
    }
    const int n_rows = times.max_prompt_rows();
    times.add({.n_prompt_rows = 2, .ms = machine.ms(2)});  // 20 ms a row: mostly the base
    EXPECT_GT(times.max_prompt_rows(), 0.6 * n_rows);
}

TEST(PassTimes, MeanFollowsTheLatestPasses) {
    PassTimes times(kTarget);
    EXPECT_EQ(times.mean_ms(), 0);
    times.add({.n_decode_rows = 1, .ms = 8});
    EXPECT_EQ(times.mean_ms(), 8);
    for (int i = 0; i < 40; ++i) {
        times.add({.n_prompt_rows = 1, .ms = 2});
    }
    EXPECT_NEAR(times.mean_ms(), 2, 0.1);
}

TEST(PassTimes, SamplesCountTheRowsOfAPass) {
    const ModulePlan whole(4);
    const ModulePlan draft = early_exit_plan(4, 2);
    const TestRun step(1, PassKind::decode, &whole);
    const TestRun verification(4, PassKind::decode, &whole);
    const TestRun prompt(7, PassKind::prompt, &whole);
    const RowRun* runs[] = {&step.run, &prompt.run, &verification.run};
    const PassSample sample = sample_of(runs, 3);
    EXPECT_EQ(sample.n_decode_rows, 5);
    EXPECT_EQ(sample.n_prompt_rows, 7);
    EXPECT_EQ(sample.ms, 3);
    EXPECT_TRUE(sample.is_whole_model);

    const TestRun drafted(1, PassKind::decode, &draft);
    const RowRun* drafts[] = {&drafted.run};
    EXPECT_FALSE(sample_of(drafts, 3).is_whole_model);
    TestRun resumed(1, PassKind::decode, &whole);
    resumed.run.request.entry_layer = 2;
    const RowRun* resumes[] = {&resumed.run};
    EXPECT_FALSE(sample_of(resumes, 3).is_whole_model);
}

}  // namespace
}  // namespace knap::pass_times_test
