#include "graph/experts/expert_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/experts/expert_groups.h"

namespace knap::test::expert_choice_test {
namespace {

using ::testing::ElementsAre;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Choice {
    std::vector<int> ids;
    std::vector<float> weights;
};

Choice choose(const ExpertSpec& spec, const std::vector<float>& logits, int n_used) {
    std::vector<ChosenExpert> chosen(static_cast<std::size_t>(n_used));
    choose_experts(spec, logits, chosen);
    Choice choice;
    for (const ChosenExpert& expert : chosen) {
        choice.ids.push_back(expert.id);
        choice.weights.push_back(expert.weight);
    }
    return choice;
}

const std::vector<float> kLogits{0.5f, 2.0f, -1.0f, 1.0f};

TEST(ExpertChoice, TakesTheLargestInOrder) {
    EXPECT_THAT(choose({}, kLogits, 3).ids, ElementsAre(1, 3, 0));
    EXPECT_THAT(choose({}, kLogits, 4).ids, ElementsAre(1, 3, 0, 2));
}

TEST(ExpertChoice, TheLowestIdWinsATie) {
    EXPECT_THAT(choose({}, {1, 3, 3, 1, 3}, 4).ids, ElementsAre(1, 2, 4, 0));
}

TEST(ExpertChoice, WeightsAreASoftmaxOfAllOrOfTheChosen) {
    const float e0 = std::exp(-1.5f);
    const float e2 = std::exp(-3.0f);
    const float e3 = std::exp(-1.0f);
    const float all = 1 + e0 + e2 + e3;
    const Choice softmax = choose({.gating = Gating::softmax}, kLogits, 2);
    EXPECT_FLOAT_EQ(softmax.weights[0], 1 / all);
    EXPECT_FLOAT_EQ(softmax.weights[1], e3 / all);
    const Choice chosen = choose({.gating = Gating::chosen}, kLogits, 2);
    EXPECT_FLOAT_EQ(chosen.weights[0], 1 / (1 + e3));
    EXPECT_FLOAT_EQ(chosen.weights[1], e3 / (1 + e3));
    const Choice normalised = choose({.gating = Gating::softmax, .normalises = true}, kLogits, 2);
    EXPECT_FLOAT_EQ(normalised.weights[0], 1 / (1 + e3));
    EXPECT_FLOAT_EQ(normalised.weights[0] + normalised.weights[1], 1);
}

TEST(ExpertChoice, LogitsThatAreNoNumbersGiveIdsAllTheSame) {
    EXPECT_THAT(choose({}, {kNaN, kNaN, kNaN}, 2).ids, ElementsAre(0, 1));
    const Choice mixed = choose({}, {kNaN, 2, 3}, 3);
    for (const int id : {0, 1, 2}) {
        EXPECT_EQ(std::ranges::count(mixed.ids, id), 1) << id;
    }
}

TEST(ExpertChoice, PlansAllowFewerButNotMore) {
    const ExpertSpec spec{.n_used = 4};
    EXPECT_EQ(n_experts_used(spec, 0), 4);
    EXPECT_EQ(n_experts_used(spec, 2), 2);
    EXPECT_EQ(n_experts_used(spec, 9), 4);
}

TEST(ExpertGroups, SlotsOfAnExpertFollowEachOther) {
    // Rows 0 to 2 with two experts each.
    const std::vector<ChosenExpert> chosen{{5, 0.1f}, {2, 0.2f}, {2, 0.3f},
                                           {0, 0.4f}, {5, 0.5f}, {0, 0.6f}};
    ExpertGroups groups;
    groups.assign(chosen, 2, 6);
    ASSERT_EQ(groups.n_slots(), 6);
    ASSERT_EQ(groups.blocks().size(), 3u);
    const ExpertBlock& last = groups.blocks()[2];
    EXPECT_EQ(last.expert, 5);
    EXPECT_EQ(last.first_slot, 4);
    EXPECT_EQ(last.n_slots, 2);
    for (int row = 0; row < 3; ++row) {
        for (int rank = 0; rank < 2; ++rank) {
            const int slot = groups.slot(row, rank);
            EXPECT_EQ(groups.row(slot), row);
            EXPECT_EQ(groups.weight(slot), chosen[static_cast<std::size_t>(2 * row + rank)].weight);
        }
    }
    EXPECT_LT(groups.slot(0, 0), groups.slot(2, 0)) << "in the order of their rows";
}

TEST(ExpertGroups, ManyRowsOfAnExpertAreSeveralBlocks) {
    const std::vector<ChosenExpert> chosen(150, {1, 1.0f});
    ExpertGroups groups;
    groups.assign(chosen, 1, 2);
    ASSERT_EQ(groups.blocks().size(), 3u);
    EXPECT_EQ(groups.blocks()[0].n_slots, ExpertGroups::kMaxSlots);
    EXPECT_EQ(groups.blocks()[2].first_slot, 2 * ExpertGroups::kMaxSlots);
    EXPECT_EQ(groups.blocks()[2].n_slots, 150 - 2 * ExpertGroups::kMaxSlots);
}

// Threads number the items of a phase by what they know before it.
TEST(ExpertGroups, BlocksAreBoundedByTheSlots) {
    std::mt19937 random(5);
    for (const int n_rows : {1, 2, 9, 70, 300}) {
        std::vector<ChosenExpert> chosen;
        for (int i = 0; i < 2 * n_rows; ++i) {
            chosen.push_back({static_cast<std::int32_t>(random() % 7), 1.0f});
        }
        ExpertGroups groups;
        groups.assign(chosen, 2, 7);
        EXPECT_LE(std::ssize(groups.blocks()), ExpertGroups::most_blocks(2 * n_rows, 7));
    }
    EXPECT_EQ(ExpertGroups::most_blocks(8, 128), 8);
    EXPECT_EQ(ExpertGroups::most_blocks(4096, 128), 192);
}

}  // namespace
}  // namespace knap::test::expert_choice_test
