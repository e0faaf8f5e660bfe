#include "tools/measure/statistics.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace knap::statistics_test {
namespace {

TEST(GeometricMean, OfTwoRatiosHasTheIntervalComputedByHand) {
    // Logarithms 0 and 2 a: mean a, standard error a, Student's t of one degree of freedom 12.706.
    const double a = std::log(1.1);
    const std::vector<double> ratios{1.0, std::exp(2 * a)};
    const Interval found = geometric_mean(ratios);
    EXPECT_NEAR(found.mean, 1.1, 1e-12);
    EXPECT_NEAR(std::log(found.low), a - 12.706 * a, 1e-9);
    EXPECT_NEAR(std::log(found.high), a + 12.706 * a, 1e-9);
}

TEST(GeometricMean, OfThreeRatiosHasTheIntervalComputedByHand) {
    // Logarithms -1, 0 and 1: variance 1, standard error 1 / sqrt(3), t of two degrees 4.303.
    const std::vector<double> ratios{std::exp(-1.0), 1.0, std::exp(1.0)};
    const Interval found = geometric_mean(ratios);
    EXPECT_NEAR(found.mean, 1.0, 1e-12);
    EXPECT_NEAR(std::log(found.high), 4.303 / std::sqrt(3.0), 1e-9);
}

// +-1 in equal parts: variance n / (n - 1), so the half width is t / sqrt(n - 1).
double half_width(std::size_t n) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < n; ++i) {
        ratios.push_back(std::exp(i % 2 == 0 ? 1.0 : -1.0));
    }
    return std::log(geometric_mean(ratios).high);
}

TEST(GeometricMean, UsesStudentsQuantilesForManyRatios) {
    EXPECT_NEAR(half_width(12) * std::sqrt(11.0), 2.201, 1e-3);
    EXPECT_NEAR(half_width(14) * std::sqrt(13.0), 2.160, 1e-3);
    EXPECT_NEAR(half_width(32) * std::sqrt(31.0), 2.040, 1e-3);
    EXPECT_NEAR(half_width(122) * std::sqrt(121.0), 1.980, 1e-3);
}

TEST(GeometricMean, OfOneRatioIsTheRatio) {
    const std::vector<double> ratios{1.25};
    const Interval found = geometric_mean(ratios);
    EXPECT_DOUBLE_EQ(found.mean, 1.25);
    EXPECT_DOUBLE_EQ(found.low, 1.25);
    EXPECT_DOUBLE_EQ(found.high, 1.25);
}

TEST(DistinctTrigrams, AreAShareOfAll) {
    EXPECT_DOUBLE_EQ(distinct_trigrams(std::vector<Token>{1, 2}), 1);
    EXPECT_DOUBLE_EQ(distinct_trigrams(std::vector<Token>{1, 2, 3, 4}), 1);
    // 123 231 312 123 231
    EXPECT_DOUBLE_EQ(distinct_trigrams(std::vector<Token>{1, 2, 3, 1, 2, 3, 1}), 0.6);
}

}  // namespace
}  // namespace knap::statistics_test
