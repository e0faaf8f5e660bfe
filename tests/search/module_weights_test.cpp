#include "search/module_weights.h"

#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::module_weights_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const Level kWindow = Level::windowed(16, 256);

// A row of the table of weights (docs/methods.md, "Worked examples"): a profile and a context, and
// the weights that follow.
struct PublishedWeights {
    int n_layers;
    double c1, c2, c3;
    int n_context;
    double attention_ms;
    KindWeights weights;
    int total;
    int budget;
};

const std::vector<PublishedWeights> kPublishedWeights = {
    {32, 0.520, 0.942e-4, 0.216, 512, 0.264230, {1, 2}, 96, 48},
    {32, 0.520, 0.942e-4, 0.216, 2000, 0.404400, {1, 1}, 64, 32},
    {32, 0.520, 0.942e-4, 0.216, 13400, 1.478280, {3, 1}, 128, 64},
    {32, 0.279, 0.735e-4, 0.279, 16384, 1.483224, {5, 1}, 192, 96},
    {28, 0.248, 0.855e-4, 0.186, 32768, 2.987664, {5, 1}, 168, 84},
};

TEST(KindWeights, FollowThePublishedVectors) {
    for (const PublishedWeights& row : kPublishedWeights) {
        const KindTimes times{.attention_ms = row.c2 * row.n_context + row.c3, .mlp_ms = row.c1};
        EXPECT_NEAR(times.attention_ms, row.attention_ms, 5e-7);
        const KindWeights weights = kind_weights(times);
        EXPECT_EQ(weights, row.weights);
        EXPECT_EQ(weights.total(row.n_layers), row.total);
        EXPECT_EQ(skip_problem(weights, {.n_layers = row.n_layers}).budget, row.budget);
    }
}

TEST(KindWeights, PaperHasNoCap) {
    const PublishedWeights& row = kPublishedWeights.back();
    const KindTimes times{.attention_ms = row.attention_ms, .mlp_ms = row.c1};
    EXPECT_EQ(kind_weights(times, std::nullopt), (KindWeights{12, 1}));
    EXPECT_EQ(kind_weights({.attention_ms = 1, .mlp_ms = 40}, std::nullopt), (KindWeights{1, 40}));
    EXPECT_EQ(kind_weights({.attention_ms = 1, .mlp_ms = 40}, 7), (KindWeights{1, 7}));
}

TEST(KindWeights, HalvesRoundToEven) {
    EXPECT_EQ(kind_weights({.attention_ms = 1.5, .mlp_ms = 1}), (KindWeights{2, 1}));
    EXPECT_EQ(kind_weights({.attention_ms = 2.5, .mlp_ms = 1}), (KindWeights{2, 1}));
    EXPECT_EQ(kind_weights({.attention_ms = 1, .mlp_ms = 3.5}), (KindWeights{1, 4}));
    EXPECT_EQ(kind_weights({.attention_ms = 1, .mlp_ms = 4.5}), (KindWeights{1, 4}));
}

TEST(KindWeights, EqualTimesWeighTheSame) {
    EXPECT_EQ(kind_weights({.attention_ms = 0.3, .mlp_ms = 0.3}), (KindWeights{1, 1}));
}

TEST(KindWeights, TimesThatAreNotPositiveCountAsTiny) {
    for (const double bad : {0.0, -0.3, kNaN, -kInfinity}) {
        EXPECT_EQ(kind_weights({.attention_ms = bad, .mlp_ms = 0.5}), (KindWeights{1, 5}));
        EXPECT_EQ(kind_weights({.attention_ms = 0.5, .mlp_ms = bad}), (KindWeights{5, 1}));
        EXPECT_EQ(kind_weights({.attention_ms = bad, .mlp_ms = bad}), (KindWeights{1, 1}));
        EXPECT_EQ(kind_weights({.attention_ms = bad, .mlp_ms = 0.5}, std::nullopt),
                  (KindWeights{1, kMaxKindWeight}));
    }
    EXPECT_EQ(kind_weights({.attention_ms = kInfinity, .mlp_ms = 1}), (KindWeights{5, 1}));
    EXPECT_EQ(kind_weights({.attention_ms = kInfinity, .mlp_ms = 1}, 1 << 30),
              (KindWeights{kMaxKindWeight, 1}));
}

std::vector<int> saved(const KnapsackItem& item) {
    std::vector<int> weights;
    for (const LevelChoice& choice : item.cheaper) {
        weights.push_back(choice.saved);
    }
    return weights;
}

TEST(SkipProblem, PublishedCodeForcesTheOuterLayers) {
    const KnapsackProblem problem =
        skip_problem({.attention = 3, .mlp = 1}, {.n_layers = 4, .forces_outer_layers = true});
    ASSERT_EQ(problem.items.size(), 8u);
    for (const std::size_t forced : {0, 1, 6, 7}) {
        EXPECT_THAT(problem.items[forced].cheaper, IsEmpty());
    }
    for (const std::size_t layer : {1, 2}) {
        EXPECT_THAT(saved(problem.items[2 * layer]), ElementsAre(3));
        EXPECT_THAT(saved(problem.items[2 * layer + 1]), ElementsAre(1));
        EXPECT_EQ(problem.items[2 * layer].cheaper[0].level, Level::skip);
    }
    EXPECT_EQ(problem.first_module, 2);
    EXPECT_EQ(problem.budget, 8) << "forced modules count in the total weight";
}

TEST(SkipProblem, PaperForcesNothing) {
    const KnapsackProblem problem =
        skip_problem({.attention = 1, .mlp = 2}, {.n_layers = 3, .forces_outer_layers = false});
    ASSERT_EQ(problem.items.size(), 6u);
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
        EXPECT_THAT(saved(problem.items[i]), ElementsAre(i % 2 == 0 ? 1 : 2));
    }
    EXPECT_EQ(problem.first_module, 0);
    EXPECT_EQ(problem.budget, 4) << "half of 9, rounded down";
}

ModuleTimes skippable(double ms) {
    return {.full_ms = ms, .cheaper = {{.level = Level::skip, .ms = 0}}};
}

TEST(BinnedProblem, BinsDivideTheTimeThatCanBeSaved) {
    const std::vector<ModuleTimes> modules = {skippable(3), skippable(1), skippable(3),
                                              skippable(1)};
    const BinnedProblem binned = binned_problem(modules, {.n_bins = 16});
    EXPECT_DOUBLE_EQ(binned.bin_ms, 0.5);
    EXPECT_EQ(binned.problem.budget, 16);
    EXPECT_THAT(saved(binned.problem.items[0]), ElementsAre(6));
    EXPECT_THAT(saved(binned.problem.items[1]), ElementsAre(2));
}

TEST(BinnedProblem, ForcedModulesAddNothingToTheBins) {
    const std::vector<ModuleTimes> modules = {
        {.full_ms = 8}, {.full_ms = 1}, skippable(3), skippable(1)};
    const BinnedProblem binned = binned_problem(modules, {.n_bins = 16});
    EXPECT_DOUBLE_EQ(binned.bin_ms, 0.25);
    EXPECT_THAT(binned.problem.items[0].cheaper, IsEmpty());
    EXPECT_EQ(binned.problem.first_module, 2);
}

TEST(BinnedProblem, LevelSavesItsDifferenceToFull) {
    const ModuleTimes attention = {
        .full_ms = 2.0,
        .cheaper = {{kWindow, 1.2}, {Level::skip, 0.0}},
    };
    const std::vector<ModuleTimes> modules = {attention, skippable(2)};
    const BinnedProblem binned = binned_problem(modules, {.n_bins = 40});
    EXPECT_THAT(saved(binned.problem.items[0]), ElementsAre(8, 20));
    EXPECT_EQ(binned.problem.items[0].cheaper[0].level, kWindow);
}

TEST(BinnedProblem, SavedTimeIsRoundedOnce) {
    // 1.4 and 0.6 bins round to the same number, but their difference is nearly a bin.
    const std::vector<ModuleTimes> modules = {
        {.full_ms = 1.4, .cheaper = {{kWindow, 0.6}, {Level::skip, 0.0}}}, skippable(8.6)};
    EXPECT_THAT(saved(binned_problem(modules, {.n_bins = 10}).problem.items[0]), ElementsAre(1, 1));
}

TEST(BinnedProblem, ChoicesThatSaveLessThanHalfABinAreLeftOut) {
    const std::vector<ModuleTimes> modules = {
        {.full_ms = 1.0, .cheaper = {{kWindow, 0.9}, {Level::skip, 0.0}}}, skippable(7)};
    EXPECT_THAT(saved(binned_problem(modules, {.n_bins = 32}).problem.items[0]), ElementsAre(4));
}

TEST(BinnedProblem, ChoicesSlowerThanFullAreLeftOut) {
    const std::vector<ModuleTimes> modules = {
        {.full_ms = 1.0, .cheaper = {{kWindow, 1.3}, {Level::skip, kNaN}}}, skippable(1)};
    const BinnedProblem binned = binned_problem(modules);
    EXPECT_THAT(binned.problem.items[0].cheaper, IsEmpty());
    EXPECT_EQ(binned.problem.first_module, 1);
}

TEST(BinnedProblem, TimesBelowZeroCountAsZero) {
    const std::vector<ModuleTimes> modules = {
        {.full_ms = 1.0, .cheaper = {{kWindow, -5.0}, {Level::skip, 0.0}}},
        {.full_ms = -1.0, .cheaper = {{Level::skip, -3.0}}}};
    const BinnedProblem binned = binned_problem(modules, {.n_bins = 4});
    EXPECT_DOUBLE_EQ(binned.bin_ms, 0.25);
    EXPECT_THAT(saved(binned.problem.items[0]), ElementsAre(4, 4));
    EXPECT_THAT(binned.problem.items[1].cheaper, IsEmpty());
}

TEST(BinnedProblem, NoChoiceSavesMoreThanTheBudget) {
    const BinnedProblem binned = binned_problem(std::vector{skippable(6)}, {.n_bins = 9});
    EXPECT_THAT(saved(binned.problem.items[0]), ElementsAre(9));
}

TEST(BinnedProblem, NothingToSaveForcesEverything) {
    for (const double ms : {1.0, 0.0, -1.0, kNaN, kInfinity}) {
        const std::vector<ModuleTimes> modules(4, {.full_ms = ms, .cheaper = {{kWindow, ms}}});
        const BinnedProblem binned = binned_problem(modules);
        EXPECT_EQ(binned.problem.first_module, 4);
    }
    EXPECT_THAT(binned_problem({}).problem.items, IsEmpty());
}

TEST(BinnedProblem, WeightsAreAccurateToHalfABin) {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> ms(0.2, 2.0);
    for (int i = 0; i < 50; ++i) {
        std::vector<ModuleTimes> modules;
        for (int module = 0; module < 40; ++module) {
            const double full_ms = ms(random);
            modules.push_back({full_ms, {{kWindow, full_ms / 3}, {Level::skip, 0}}});
        }
        const BinnedProblem binned = binned_problem(modules, {.n_bins = 400});
        for (std::size_t module = 0; module < modules.size(); ++module) {
            const std::vector<int> weights = saved(binned.problem.items[module]);
            const double full_ms = modules[module].full_ms;
            ASSERT_EQ(weights.size(), 2u);
            EXPECT_NEAR(weights[0] * binned.bin_ms, full_ms * 2 / 3, 0.501 * binned.bin_ms);
            EXPECT_NEAR(weights[1] * binned.bin_ms, full_ms, 0.501 * binned.bin_ms);
        }
    }
}

}  // namespace
}  // namespace knap::module_weights_test
