#include "decode/knapspec/plan_pool.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "forward/plan_text.h"
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
    return {std::vector<int>(kLayers), head, {kSmall, kLarge}, saved};
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

TEST(PlanPool, WindowsLeaveShorterOnesOfLayersAlone) {
    const std::vector<SavedPlan> saved = {
        {.n_context = kContext,
         .plan = uniform_window_plan(kLayers, {.sinks = 4, .recent = 300}),
         .agreed = 60,
         .n_rows = 64}};
    PlanPool pool({512, 512, 0, 512}, HeadLevel::full, {kSmall, kLarge}, saved);
    pool.grow(kContext);
    ASSERT_EQ(pool.n_plans(), 3);
    EXPECT_EQ(pool.at(0).plan, uniform_window_plan(kLayers, kSmall));
    EXPECT_EQ(to_string(pool.at(1).plan), "a2=w16+1024");
    EXPECT_EQ(pool.at(2).plan, saved[0].plan);

    PlanPool narrow({512, 512, 512, 512}, HeadLevel::full, {kLarge}, {});
    narrow.grow(kContext);
    EXPECT_FALSE(narrow.best(cheap_costs(), kContext, kLength)) << "the whole model";
}

TEST(PlanPool, OffersEveryPlanWithTheReducedHeadIfThereIsOne) {
    PlanPool pool = pool_of({}, HeadLevel::reduced);
    pool.grow(kContext);
    ASSERT_EQ(pool.n_plans(), 4);
    EXPECT_EQ(pool.at(1).plan.head(), HeadLevel::reduced);
    EXPECT_LT(pool.at(1).acceptance.rate(), pool.at(0).acceptance.rate());
}

TEST(PlanPool, TakesSavedPlansForTheLongestContexts) {
    constexpr int kLong = 1'500'000'000;  // twice of it is no int
    const std::vector<SavedPlan> saved = {
        {.n_context = kLong, .plan = early_exit_plan(kLayers, 2), .agreed = 1, .n_rows = 1}};
    PlanPool pool(std::vector<int>(kLayers), HeadLevel::full, {}, saved);
    pool.grow(kLong);
    EXPECT_EQ(pool.n_plans(), 1);
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

// Plans of one pool that differ in what they skip, the `i`-th with a lower acceptance.
std::vector<FoundPlan> many_plans(int n) {
    std::vector<FoundPlan> plans;
    for (int i = 0; i < n; ++i) {
        ModulePlan plan(8);
        for (int bit = 0; bit < 6; ++bit) {
            if (((i + 1) >> bit & 1) != 0) {
                plan.set(bit, Module::mlp, Level::skip);
            }
        }
        plans.push_back({.plan = plan, .n_agreed = 60 - i, .n_rows = 64});
    }
    return plans;
}

TEST(PlanPool, AFullPoolForgetsItsWorstPlans) {
    PlanPool pool(std::vector<int>(8), HeadLevel::full, {kSmall, kLarge}, {});
    const FakeMachine machine = long_context_machine(8, /*row_price=*/0.05);
    const CostTracker costs(
        CostModel(machine.profile(profile_probes(machine.layer_classes, 8192, 16))));
    pool.grow(kContext);
    const std::vector<FoundPlan> plans = many_plans(50);
    pool.learn(plans);
    const auto at = [&](const ModulePlan& plan) {
        for (int i = 0; i < pool.n_plans(); ++i) {
            if (pool.at(i).plan == plan) {
                return i;
            }
        }
        return -1;
    };
    pool.suspend(at(plans[48].plan), kContext);
    pool.at(0).acceptance.replay(0, 1000);  // a window, worse than any
    const int in_use = pool.forget_worst(costs, kContext, kLength, at(plans[49].plan));
    EXPECT_EQ(pool.n_plans(), static_cast<int>(PlanPool::kMaxPlans));
    EXPECT_EQ(pool.at(in_use).plan, plans[49].plan);
    EXPECT_GE(at(plans[48].plan), 0) << "suspended: otherwise it would be tried again";
    EXPECT_EQ(pool.at(0).plan, uniform_window_plan(8, kSmall));
    double worst_kept = 1;
    double best_forgotten = 0;
    const auto speed = [&](const FoundPlan& found) {
        PlanPool alone(std::vector<int>(8), HeadLevel::full, {}, {});
        alone.learn(std::span(&found, 1));
        return alone.best(costs, kContext, kLength)->rating.tokens_per_ms();
    };
    for (std::size_t i = 0; i < 48; ++i) {
        if (at(plans[i].plan) >= 0) {
            worst_kept = std::min(worst_kept, speed(plans[i]));
        } else {
            best_forgotten = std::max(best_forgotten, speed(plans[i]));
        }
    }
    EXPECT_GT(best_forgotten, 0);
    EXPECT_GE(worst_kept, best_forgotten);
    EXPECT_EQ(pool.forget_worst(costs, kContext, kLength, -1), -1) << "it is not full any more";
    EXPECT_EQ(pool.n_plans(), static_cast<int>(PlanPool::kMaxPlans));
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

TEST(PlanPool, EarlierRunsCountLittleAndOnce) {
    Learned known;
    known.add_drafts({.name = "a=w16+64", .bucket = context_bucket(kContext)},
                     {.right = 20, .all = 400});
    known.add_drafts({.name = "a=w16+64", .bucket = context_bucket(kContext), .is_sampled = true},
                     {.right = 400, .all = 400});
    PlanPool pool = pool_of();
    pool.grow(kContext);
    const double before = pool.at(0).acceptance.rate();
    const double other = pool.at(1).acceptance.rate();
    for (int i = 0; i < 5; ++i) {
        pool.recall(known, kContext, /*is_sampled=*/false);
    }
    EXPECT_LT(pool.at(0).acceptance.rate(), before - 0.2);
    EXPECT_NEAR(pool.at(0).acceptance.evidence().rejected, 11.4, 1e-9) << "twelve drafts, once";
    EXPECT_EQ(pool.at(1).acceptance.rate(), other) << "nothing is known of it";
    for (int i = 0; i < 40; ++i) {
        pool.at(0).acceptance.observe(1, 1, {});
    }
    EXPECT_GT(pool.at(0).acceptance.rate(), 0.7) << "the new text overrules them";
    pool.recall(known, kContext, /*is_sampled=*/true);
    EXPECT_GT(pool.at(0).acceptance.rate(), 0.75);
}

// Requests of a conversation may be greedy and sampled in turn, and long and short ones.
TEST(PlanPool, EarlierRunsCountOnceWhateverCameBetween) {
    constexpr int kLonger = 2 * kContext;
    Learned known;
    for (const int n_context : {kContext, kLonger}) {
        for (const bool is_sampled : {false, true}) {
            known.add_drafts(
                {.name = "a=w16+64", .bucket = context_bucket(n_context), .is_sampled = is_sampled},
                {.right = 0, .all = 400});
        }
    }
    PlanPool pool = pool_of();
    pool.grow(kContext);
    const auto recall_everywhere = [&] {
        for (const int n_context : {kContext, kLonger}) {
            for (const bool is_sampled : {false, true}) {
                pool.recall(known, n_context, is_sampled);
            }
        }
    };
    recall_everywhere();
    for (int request = 0; request < 4; ++request) {
        pool.fade();
        for (int i = 0; i < 10; ++i) {
            pool.at(0).acceptance.observe(2, 2, {});
        }
        const double learned = pool.at(0).acceptance.rate();
        recall_everywhere();
        EXPECT_EQ(pool.at(0).acceptance.rate(), learned) << request;
    }
}

TEST(PlanPool, EarlierRunsCountOnceAsTheTextGrows) {
    Learned known;
    known.add_drafts({.name = "a=w16+64", .bucket = context_bucket(kContext)},
                     {.right = 0, .all = 2});
    PlanPool pool = pool_of();
    pool.grow(kContext);
    pool.recall(known, kContext, /*is_sampled=*/false);
    pool.recall(known, 2 * kContext, /*is_sampled=*/false);
    EXPECT_EQ(pool.at(0).acceptance.evidence().rejected, 2);
}

TEST(PlanPool, EarlierRunsAtSimilarContextsCountLess) {
    Learned known;
    known.add_drafts({.name = "a=w16+64", .bucket = context_bucket(kContext) + 1},
                     {.right = 0, .all = 400});
    PlanPool pool = pool_of();
    pool.grow(kContext);
    pool.recall(known, kContext, /*is_sampled=*/false);
    EXPECT_EQ(pool.at(0).acceptance.evidence().rejected, 4);
}

}  // namespace
}  // namespace knap::test::plan_pool_test
