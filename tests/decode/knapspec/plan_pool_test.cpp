#include "decode/knapspec/plan_pool.h"

#include <vector>

#include <gtest/gtest.h>

#include "search/cost/probes.h"
#include "support/fake_machine.h"

namespace knap::test::plan_pool_test {
namespace {

constexpr int kLayers = 4;
constexpr int kContext = 4096;
constexpr int kLength = 8;
const Window kSmall{.sinks = 16, .recent = 64};
const Window kLarge{.sinks = 16, .recent = 1024};

PlanPool pool_of(std::span<const SavedPlan> saved = {}, HeadLevel head = HeadLevel::full) {
    return {kLayers, head, {kSmall, kLarge}, saved};
}

// Rows are cheap, and most of a step is attention.
CostTracker cheap_costs() {
    const FakeMachine machine = long_context_machine(kLayers, /*row_price=*/0.05);
    return CostTracker(CostModel(machine.profile(profile_probes(machine.layer_classes, 8192, 16))));
}

TEST(PlanPool, HoldsWindowsShorterThanTheContext) {
    PlanPool pool = pool_of();
    pool.grow(50);
    EXPECT_EQ(pool.n_plans(), 0);
    pool.grow(200);
    EXPECT_EQ(pool.n_plans(), 1);
    pool.grow(kContext);
    EXPECT_EQ(pool.n_plans(), 2);
    pool.grow(kContext);
    EXPECT_EQ(pool.n_plans(), 2) << "each once";
}

TEST(PlanPool, OffersEveryPlanWithTheReducedHeadIfThereIsOne) {
    PlanPool pool = pool_of({}, HeadLevel::reduced);
    pool.grow(kContext);
    ASSERT_EQ(pool.n_plans(), 4);
    EXPECT_EQ(pool.at(1).plan.head(), HeadLevel::reduced);
    EXPECT_LT(pool.at(1).acceptance.rate(), pool.at(0).acceptance.rate());
}

TEST(PlanPool, TakesSavedPlansForSimilarContexts) {
    const std::vector<SavedPlan> saved = {
        {.n_context = kContext, .plan = early_exit_plan(kLayers, 3), .agreed = 60, .n_rows = 64},
        {.n_context = 100, .plan = early_exit_plan(kLayers, 2), .agreed = 60, .n_rows = 64},
        {.n_context = kContext, .plan = early_exit_plan(kLayers, 1), .agreed = 0, .n_rows = 0},
    };
    PlanPool pool = pool_of(saved);
    pool.grow(kContext);
    ASSERT_EQ(pool.n_plans(), 3);
    EXPECT_EQ(pool.at(2).plan, saved[0].plan);
    EXPECT_NEAR(pool.at(2).acceptance.rate(), 60.0 / 64, 1e-9);
}

TEST(PlanPool, ReplaysSoonOutweighTheBelief) {
    PlanPool pool = pool_of();
    pool.grow(kContext);
    const double believed = pool.at(0).acceptance.rate();
    pool.learn(std::vector<FoundPlan>{
        {.plan = pool.at(0).plan, .n_agreed = 0, .n_rows = 32},
        {.plan = early_exit_plan(kLayers, 3), .n_agreed = 32, .n_rows = 32}});
    EXPECT_LT(pool.at(0).acceptance.rate(), believed / 2);
    ASSERT_EQ(pool.n_plans(), 3) << "a plan that a search found joins";
    EXPECT_GT(pool.at(2).acceptance.rate(), 0.9);
}

TEST(PlanPool, BestIsTheCheaperOfTwoPlansWithSimilarPriors) {
    PlanPool pool = pool_of();
    pool.grow(kContext);
    const auto best = pool.best(cheap_costs(), kContext, kLength);
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(pool.at(best->index).plan, uniform_window_plan(kLayers, kSmall));
}

TEST(PlanPool, SuspendedPlansWaitAndAreRememberedAsTheyWere) {
    PlanPool pool = pool_of();
    pool.grow(kContext);
    for (int i = 0; i < 50; ++i) {
        pool.at(0).acceptance.observe(1, 1, {});
    }
    const double observed = pool.at(0).acceptance.rate();
    pool.suspend(0, kContext);
    EXPECT_EQ(pool.best(cheap_costs(), kContext, kLength)->index, 1);
    EXPECT_EQ(pool.best(cheap_costs(), kContext + 64, kLength)->index, 0);
    EXPECT_DOUBLE_EQ(pool.at(0).acceptance.rate(), observed);
}

TEST(PlanPool, WindowsLearnFromEachOther) {
    PlanPool pool = pool_of();
    pool.grow(kContext);
    pool.share_evidence();
    const double small = pool.at(0).acceptance.rate();
    const double large = pool.at(1).acceptance.rate();
    EXPECT_GT(large, small);
    for (int i = 0; i < 50; ++i) {
        pool.at(0).acceptance.observe(2, 2, {});
    }
    pool.share_evidence();
    EXPECT_GT(pool.at(1).acceptance.rate(), large + 0.02) << "a larger window accepts no less";
    for (int i = 0; i < 300; ++i) {
        pool.at(1).acceptance.observe(1, 0, {});
    }
    pool.at(0).acceptance.fade(0);
    pool.share_evidence();
    EXPECT_LT(pool.at(0).acceptance.rate(), small - 0.1) << "a smaller one accepts no more";
}

TEST(PlanPool, FoundPlansAreTriedWithTheReducedHead) {
    PlanPool pool = pool_of({}, HeadLevel::reduced);
    pool.learn(std::vector<FoundPlan>{
        {.plan = early_exit_plan(kLayers, 3), .n_agreed = 30, .n_rows = 32}});
    ASSERT_EQ(pool.n_plans(), 2);
    EXPECT_EQ(pool.at(1).plan.head(), HeadLevel::reduced);
    EXPECT_NEAR(pool.at(1).acceptance.rate(), 0.95 * 30 / 32, 1e-9);
}

TEST(PlanPool, PromisingPlansAreRatedAtAnAssumedAcceptance) {
    PlanPool pool = pool_of();
    pool.grow(kContext);
    const CostTracker costs = cheap_costs();
    const double plain = 1 / costs.plain_step_ms(kContext);
    EXPECT_EQ(pool.promising(0.95, plain, costs, kContext, kLength).size(), 2u);
    EXPECT_TRUE(pool.promising(0.95, 100 * plain, costs, kContext, kLength).empty());
    const auto promising = pool.promising(0.95, plain, costs, kContext, kLength);
    EXPECT_GE(promising[0].rating.tokens_per_ms(), promising[1].rating.tokens_per_ms());
}

TEST(PlanPool, WindowsThatCoverTheContextAreNotUsed) {
    PlanPool pool = pool_of();
    pool.grow(kContext);
    EXPECT_FALSE(pool.best(cheap_costs(), 40, kLength).has_value());
}

}  // namespace
}  // namespace knap::test::plan_pool_test
