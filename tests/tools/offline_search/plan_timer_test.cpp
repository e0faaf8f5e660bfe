#include "tools/offline_search/plan_timer.h"

#include <atomic>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::plan_timer_test {
namespace {

class TimedPlans : public ::testing::Test {
  protected:
    TimedPlans() : engine_({.model_path = tiny_model(), .n_ctx = 128, .n_threads = 1}) {}

    PlanTimer timer(std::function<bool()> is_cancelled = {}) {
        return {engine_,
                {random_tokens(20, 256, /*seed=*/1), random_tokens(30, 256, /*seed=*/2)},
                /*n_predict=*/8,
                std::move(is_cancelled)};
    }

    static SpeculationOptions exit_after(int layer) {
        return {.strategy = "static",
                .draft_max = 3,
                .settings = {{"plan", "exit=" + std::to_string(layer)}}};
    }

    Engine engine_;
};

TEST_F(TimedPlans, HaveASpeedAndAnAcceptance) {
    PlanTimer plans = timer();
    std::vector<double> progress;
    ASSERT_TRUE(plans.read_prompts([&](double fraction) { progress.push_back(fraction); }));
    EXPECT_EQ(progress, (std::vector{0.0, 0.5}));
    const auto whole_model = plans.measure(exit_after(4));
    ASSERT_TRUE(whole_model.has_value());
    EXPECT_GT(whole_model->speed, 0);
    EXPECT_GT(whole_model->tokens_per_second, 0);
    EXPECT_EQ(whole_model->acceptance_rate, 1);
    const auto plain = plans.measure(plain_decoding());
    ASSERT_TRUE(plain.has_value());
    EXPECT_EQ(plain->acceptance_rate, 0) << "nothing is drafted";
}

TEST_F(TimedPlans, StartWithAFreshThresholdInEveryTrial) {
    const SpeculationOptions adaptive{
        .strategy = "draft-verify",
        .draft_max = 6,
        .settings = {{"plan", "exit=1"}, {"exit-confidence", "0"}, {"eps", "1"}, {"beta2", "0"}}};
    PlanTimer plans = timer();
    ASSERT_TRUE(plans.read_prompts([](double) {}));
    const auto first = plans.measure(adaptive);
    const auto again = plans.measure(adaptive);
    ASSERT_TRUE(first && again);
    EXPECT_LT(first->acceptance_rate, 0.5) << "otherwise the threshold stays where it is";
    EXPECT_EQ(again->acceptance_rate, first->acceptance_rate);
}

TEST_F(TimedPlans, RefuseAPlanThatCannotRun) {
    PlanTimer plans = timer();
    EXPECT_THROW(plans.measure(exit_after(5)), Error);
}

TEST_F(TimedPlans, StopWhenCancelled) {
    std::atomic<bool> is_cancelled = true;
    PlanTimer plans = timer([&] { return is_cancelled.load(); });
    EXPECT_FALSE(plans.read_prompts([](double) {}));
    EXPECT_FALSE(plans.measure(exit_after(2)).has_value());
    is_cancelled = false;
    EXPECT_TRUE(plans.measure(exit_after(2)).has_value());
}

}  // namespace
}  // namespace knap::test::plan_timer_test
