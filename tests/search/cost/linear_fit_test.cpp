#include "search/cost/linear_fit.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace knap::linear_fit_test {
namespace {

TEST(LinearFit, FindsAnExactSolution) {
    LinearFit fit(2);
    fit.add(std::vector{2.0, 1.0}, 8.0);
    fit.add(std::vector{1.0, 3.0}, 9.0);
    fit.add_belief(0, 0.0, 1e-9);
    fit.add_belief(1, 0.0, 1e-9);
    const std::vector<double> x = fit.solve(0);
    EXPECT_NEAR(x[0], 3, 1e-9);
    EXPECT_NEAR(x[1], 2, 1e-9);
}

TEST(LinearFit, FollowsABeliefIfNoEquationDeterminesAnUnknown) {
    LinearFit fit(2);
    fit.add(std::vector{1.0, 0.0}, 5.0);
    fit.add_belief(0, 1.0, 1e-6);
    fit.add_belief(1, 7.0, 1e-6);
    const std::vector<double> x = fit.solve(0.5);
    EXPECT_NEAR(x[0], 5, 1e-6);
    EXPECT_NEAR(x[1], 7, 1e-6);
}

TEST(LinearFit, WeighsABeliefAgainstAnEquation) {
    LinearFit fit(1);
    fit.add(std::vector{1.0}, 4.0);
    fit.add_belief(0, 1.0, 2.0);
    EXPECT_DOUBLE_EQ(fit.solve(0)[0], (4.0 + 4 * 1.0) / 5);
}

// Checks the Karush-Kuhn-Tucker conditions: at the bound the error rises inwards, elsewhere its
// gradient is zero. For a convex function they hold exactly at the minimum.
TEST(LinearFit, FindsTheMinimumWithinItsBound) {
    constexpr std::size_t kUnknowns = 6;
    constexpr double kLowest = 0.1;
    std::mt19937 engine(1);
    std::normal_distribution<double> normal;
    int n_at_bound = 0;
    for (int problem = 0; problem < 200; ++problem) {
        LinearFit fit(kUnknowns);
        std::vector<std::vector<double>> rows;
        std::vector<double> values;
        for (int i = 0; i < 8; ++i) {
            std::vector<double> row(kUnknowns);
            std::generate(row.begin(), row.end(), [&] { return normal(engine); });
            values.push_back(normal(engine));
            fit.add(row, values.back());
            rows.push_back(row);
        }
        for (std::size_t j = 0; j < kUnknowns; ++j) {
            fit.add_belief(j, 1.0, 0.1);
            rows.emplace_back(kUnknowns, 0.0).at(j) = 0.1;
            values.push_back(0.1);
        }
        const std::vector<double> x = fit.solve(kLowest);
        for (std::size_t j = 0; j < kUnknowns; ++j) {
            double slope = 0;  // of half the sum of squared errors
            for (std::size_t i = 0; i < rows.size(); ++i) {
                double error = -values[i];
                for (std::size_t k = 0; k < kUnknowns; ++k) {
                    error += rows[i][k] * x[k];
                }
                slope += rows[i][j] * error;
            }
            const bool is_at_bound = x[j] == kLowest;
            n_at_bound += is_at_bound ? 1 : 0;
            EXPECT_GE(x[j], kLowest);
            EXPECT_GE(slope, -1e-9) << "problem " << problem;
            if (!is_at_bound) {
                EXPECT_NEAR(slope, 0, 1e-9) << "problem " << problem;
            }
        }
    }
    EXPECT_GT(n_at_bound, 200);  // the bound is active often enough
}

}  // namespace
}  // namespace knap::linear_fit_test
