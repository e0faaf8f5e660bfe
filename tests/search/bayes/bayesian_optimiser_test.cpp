#include "search/bayes/bayesian_optimiser.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace knap::bayesian_optimiser_test {
namespace {

// One smooth hill in the cube, with a value of 1 at the top.
double hill(const std::vector<double>& point) {
    double square = 0;
    for (std::size_t i = 0; i < point.size(); ++i) {
        const double top = 0.2 + 0.1 * static_cast<double>(i);
        square += (point[i] - top) * (point[i] - top);
    }
    return std::exp(-2 * square);
}

double best_of(BayesianOptimiser& optimiser, int n_trials, bool suggests) {
    double best = 0;
    for (int i = 0; i < n_trials; ++i) {
        const auto point = suggests ? optimiser.suggest() : optimiser.random_point();
        const double score = hill(point);
        optimiser.add(point, score);
        best = std::max(best, score);
    }
    return best;
}

TEST(BayesianOptimiser, FindsTheTopOfAHillSoonerThanRandomSearch) {
    constexpr int kSeeds = 5;
    constexpr int kTrials = 25;
    double suggested = 0;
    double random = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
        BayesianOptimiser one({.n_variables = 5, .n_samples = 512, .seed = seed});
        BayesianOptimiser other({.n_variables = 5, .n_samples = 512, .seed = seed});
        suggested += best_of(one, kTrials, true) / kSeeds;
        random += best_of(other, kTrials, false) / kSeeds;
    }
    EXPECT_GT(suggested, 0.95);
    EXPECT_GT(suggested, random + 0.1);
}

TEST(BayesianOptimiser, SuggestionsDependOnTheSeed) {
    const auto suggest = [](std::uint64_t seed) {
        BayesianOptimiser optimiser({.n_variables = 3, .n_samples = 64, .seed = seed});
        best_of(optimiser, 4, true);
        return optimiser.suggest();
    };
    EXPECT_EQ(suggest(1), suggest(1));
    EXPECT_NE(suggest(1), suggest(2));
}

TEST(BayesianOptimiser, SuggestsARandomPointBeforeAnyIsAdded) {
    BayesianOptimiser optimiser({.n_variables = 4});
    BayesianOptimiser same({.n_variables = 4});
    const auto point = optimiser.suggest();
    EXPECT_EQ(point, same.random_point());
    const auto next = optimiser.suggest();
    EXPECT_NE(next, point);
    EXPECT_EQ(next, same.random_point()) << "a suggestion is not a point that was tried";
    EXPECT_TRUE(std::ranges::all_of(point, [](double x) { return x >= 0 && x < 1; }));
}

TEST(BayesianOptimiser, SuggestionsStayInsideTheCube) {
    BayesianOptimiser optimiser({.n_variables = 2, .kappa = 0, .n_samples = 256});
    const std::vector corner{0.0, 1.0};
    optimiser.add(corner, 2.0);
    optimiser.add(std::vector{0.9, 0.1}, 1.0);
    const auto point = optimiser.suggest();
    EXPECT_TRUE(std::ranges::all_of(point, [](double x) { return x >= 0 && x <= 1; }));
    // Only the mean counts, which is highest at the corner.
    EXPECT_LT(point[0], 0.25);
    EXPECT_GT(point[1], 0.75);
}

// With little to gain anywhere, the bound is highest where least is known.
TEST(BayesianOptimiser, ALargeKappaPrefersTheUnknown) {
    BayesianOptimiser optimiser({.n_variables = 1, .kappa = 100, .n_samples = 256});
    for (const double x : {0.0, 0.1, 0.2, 0.3, 0.4, 0.5}) {
        optimiser.add(std::vector{x}, 1 - x);
    }
    EXPECT_GT(optimiser.suggest()[0], 0.9);
}

}  // namespace
}  // namespace knap::bayesian_optimiser_test
