#include "decode/learned/learned.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::test::learned_test {
namespace {

constexpr int kLayers = 4;

Learned::Way window_way(int n_context, bool is_sampled = false) {
    return {.name = "a=w16+64", .bucket = context_bucket(n_context), .is_sampled = is_sampled};
}

CostSample step(double ms, double spread_ms = 0.1) {
    return {.plan = ModulePlan(kLayers),
            .n_context = 300,
            .ms = ms,
            .spread_ms = spread_ms,
            .n_measured = 4};
}

SavedPlan plan_at(int n_context, int exit_layer = 1) {
    return {.n_context = n_context,
            .plan = early_exit_plan(kLayers, exit_layer),
            .agreed = 3,
            .n_rows = 4};
}

TEST(ContextBucket, DoublesFrom128) {
    EXPECT_EQ(context_bucket(0), 0);
    EXPECT_EQ(context_bucket(127), 0);
    EXPECT_EQ(context_bucket(128), 1);
    EXPECT_EQ(context_bucket(255), 1);
    EXPECT_EQ(context_bucket(256), 2);
    for (int bucket = 0; bucket < kContextBuckets; ++bucket) {
        EXPECT_EQ(context_bucket(first_of_bucket(bucket)), bucket);
    }
    EXPECT_EQ(context_bucket(2147483647), kContextBuckets - 1);
    EXPECT_EQ(context_bucket(-1), 0);
}

TEST(Learned, CountsAddUp) {
    Learned first;
    first.add_drafts(window_way(300), {.right = 8, .all = 10});
    Learned second;
    second.add_drafts(window_way(300), {.right = 1, .all = 10});
    second.add_drafts(window_way(300, true), {.right = 2, .all = 2});
    first.add(second);
    EXPECT_EQ(first.drafts_of(window_way(500)), (DraftCounts{.right = 9, .all = 20}));
    EXPECT_EQ(first.drafts_of(window_way(500, true)), (DraftCounts{.right = 2, .all = 2}));
    EXPECT_EQ(first.drafts_of(window_way(600)), DraftCounts()) << "another length";
}

TEST(Learned, OldCountsFade) {
    Learned learned;
    Learned right;
    right.add_drafts(window_way(300), {.right = 10, .all = 10});
    Learned wrong;
    wrong.add_drafts(window_way(300), {.right = 0, .all = 10});
    for (int i = 0; i < 100; ++i) {
        learned.add(right);
    }
    for (int i = 0; i < 100; ++i) {
        learned.add(wrong);
        ASSERT_LE(learned.drafts_of(window_way(300)).all, Learned::kMostDrafts);
    }
    const DraftCounts seen = learned.drafts_of(window_way(300));
    EXPECT_LT(seen.right, seen.all / 4) << "a thousand drafts of each kind";
}

// Three candidates are compared with every token, and some tokens were drafted as well.
TEST(Learned, WeighsATokenOnce) {
    Learned notes;
    CopyAcceptance acceptance;
    acceptance.note_in(notes.copies[0][0]);
    for (int token = 0; token < 900; ++token) {
        acceptance.observe({.length = 2, .standing = CopyEvidence::Standing::leading}, true);
        acceptance.observe({.length = 2, .standing = CopyEvidence::Standing::second}, false);
        acceptance.observe({.length = 1, .standing = CopyEvidence::Standing::rare}, false);
        notes.add_drafts({.name = "copies"}, {.right = token % 3 == 0 ? 1.0 : 0.0, .all = 0.5});
    }
    EXPECT_EQ(notes.weight(), 900);
    notes.add_drafts(window_way(300), {.right = 600, .all = 700});
    EXPECT_EQ(notes.weight(), 450 + 700) << "drafts, if they are more";
    notes.add_cost(step(1));
    EXPECT_EQ(notes.weight(), 450 + 700 + 1);
}

TEST(Learned, IsBoundedAndKeepsWhatWasUsedLast) {
    Learned learned;
    for (int run = 0; run < 300; ++run) {
        Learned notes{.n_runs = 1};
        notes.add_drafts({.name = std::to_string(run)}, {.right = 1, .all = 2});
        notes.add_drafts({.name = "often"}, {.right = 1, .all = 2});
        notes.add_plan(plan_at(128 << (run % 10), 1 + run % 3), 1.5);
        CostSample sample = step(1);
        sample.n_rows = 1 + run;
        notes.add_cost(sample);
        learned.add(notes);
    }
    EXPECT_EQ(learned.n_runs, 300);
    EXPECT_EQ(learned.ways.size(), Learned::kMostWays);
    EXPECT_EQ(learned.plans.size(), Learned::kMostPlans);
    EXPECT_EQ(learned.costs.size(), Learned::kMostCosts);
    EXPECT_TRUE(learned.ways.contains({.name = "often"}));
    EXPECT_TRUE(learned.ways.contains({.name = "299"}));
    EXPECT_FALSE(learned.ways.contains({.name = "0"}));
    for (const Learned::Cost& cost : learned.costs) {
        EXPECT_GT(cost.sample.n_rows, 300 - static_cast<int>(Learned::kMostCosts));
    }
}

TEST(Learned, PlansAreKeptOnceForContextsOfALength) {
    Learned learned;
    learned.add_plan(plan_at(300), 1.1);
    learned.add_plan(plan_at(310), 1.3);
    learned.add_plan(plan_at(3000), 1.2);
    ASSERT_EQ(learned.plans.size(), 2u);
    EXPECT_EQ(learned.plans[0].speed, 1.3) << "the later finding";
}

TEST(Learned, TablesOfCopiesAddUpAndFade) {
    Learned learned;
    Learned notes;
    notes.copies[1][2][3] = {.right = 300, .all = 400};
    learned.add(notes);
    EXPECT_EQ(learned.copies[1][2][3], (DraftCounts{.right = 300, .all = 400}));
    learned.add(notes);
    EXPECT_EQ(learned.copies[1][2][3], (DraftCounts{.right = 300, .all = 400}))
        << "800 are more than it remembers";
    EXPECT_EQ(learned.copies[0][2][3], DraftCounts());
    EXPECT_FALSE(learned.is_empty());
}

TEST(UpdatedCost, IsAMeanThatFollowsADrift) {
    EXPECT_NEAR(updated(step(10), step(10.4)).ms, 10.2, 1e-9);
    EXPECT_EQ(updated(step(10), step(10.4)).n_measured, 8);
    EXPECT_NEAR(updated(step(10), step(20)).ms, 18, 1e-9) << "old times hardly count";
    EXPECT_NEAR(updated(step(10, 5), step(20)).ms, 15, 1e-9) << "within its spread";
}

TEST(UpdatedCost, ABusyMachineReplacesNoQuietMeasurement) {
    CostSample busy = step(30);
    busy.was_busy = true;
    EXPECT_EQ(updated(step(10), busy).ms, 10);
    EXPECT_EQ(updated(busy, step(10)).ms, 10);
    EXPECT_FALSE(updated(busy, step(10)).was_busy);
    Learned learned;
    learned.add_cost(step(10));
    learned.add_cost(busy);
    ASSERT_EQ(learned.costs.size(), 1u);
    EXPECT_EQ(learned.costs[0].sample.ms, 10);
}

}  // namespace
}  // namespace knap::test::learned_test
