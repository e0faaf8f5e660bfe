#include "tools/measure/report/bench_summary.h"

#include <cmath>

#include <gtest/gtest.h>

#include "support/bench_example.h"

namespace knap::bench_summary_test {
namespace {

BenchRow row(const std::string& task, double speedup, int n_drafted, int n_accepted, int rounds) {
    BenchRow made = test::example_row();
    made.task = task;
    made.speedup.mean = speedup;
    made.request_speedup.mean = (1 + speedup) / 2;
    made.tokens_per_second = 100 * speedup;
    made.n_drafted = n_drafted;
    made.n_accepted = n_accepted;
    made.rounds = rounds;
    made.mean_accepted_length = 2;
    return made;
}

TEST(BenchSummary, CoversAllTasksAndEachTask) {
    const auto found =
        summarise({row("qa", 2, 10, 5, 4), row("qa", 8, 30, 5, 4), row("math", 1, 0, 0, 8)});
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].task, "");
    EXPECT_EQ(found[0].n_prompts, 3);
    EXPECT_NEAR(found[0].speedup.mean, std::cbrt(16.0), 1e-12);
    EXPECT_EQ(found[0].lowest_speedup, 1);
    EXPECT_EQ(found[0].acceptance_rate, 0.25);
    EXPECT_DOUBLE_EQ(found[0].mean_accepted_length, 2);
    EXPECT_EQ(found[1].task, "qa");
    EXPECT_NEAR(found[1].speedup.mean, 4, 1e-12);
    EXPECT_NEAR(found[1].request_speedup.mean, std::sqrt(1.5 * 4.5), 1e-12);
    EXPECT_LT(found[1].request_speedup.low, found[1].request_speedup.mean);
    EXPECT_NEAR(found[1].tokens_per_second, 400, 1e-9);
    EXPECT_EQ(found[2].task, "math");
    EXPECT_FALSE(found[2].acceptance_rate);
}

TEST(BenchSummary, DoesNotRepeatASingleTask) {
    const auto found = summarise({row("qa", 2, 10, 5, 4), row("qa", 8, 30, 5, 4)});
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].n_prompts, 2);
}

TEST(BenchSummary, SeparatesAcceptanceRules) {
    BenchRow ratio = row("qa", 3, 1, 1, 1);
    ratio.acceptance = "ratio";
    const auto found = summarise({row("qa", 2, 10, 5, 4), ratio});
    ASSERT_EQ(found.size(), 2u);
    EXPECT_NEAR(found[1].speedup.mean, 3, 1e-12);
}

}  // namespace
}  // namespace knap::bench_summary_test
