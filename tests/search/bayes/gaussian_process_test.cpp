#include "search/bayes/gaussian_process.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace knap::gaussian_process_test {
namespace {

constexpr double kNoise = 0.1;

// The Matern kernel of smoothness 5/2 at a distance in units of the length scale.
double matern(double distance) {
    const double r = std::sqrt(5.0) * distance;
    return (1 + r + r * r / 3) * std::exp(-r);
}

// The length scale with one variable if all are equally probable: the shortest.
constexpr double kShortest = 0.125;
constexpr GaussianProcessOptions kOneVariable{.n_variables = 1, .noise = kNoise};

ProcessEstimate estimate_at(const GaussianProcess& process, const std::vector<double>& point) {
    return process.estimate(point).front();
}

// (1 + sqrt(5) + 5/3) * exp(-sqrt(5)), computed by hand.
TEST(GaussianProcess, CovarianceAtOneLengthScaleIsThatOfMatern) {
    const GaussianProcess process(kOneVariable, std::vector{0.25}, std::vector{3.0});
    const double covariance = 0.5239941088318203;
    const ProcessEstimate there = estimate_at(process, {0.25 + kShortest});
    EXPECT_NEAR(there.deviation, std::sqrt(1 - covariance * covariance / (1 + kNoise)), 1e-12);
}

TEST(GaussianProcess, ASingleValueIsExpectedEverywhereWithLeastDeviationAtItsPoint) {
    const GaussianProcess process(kOneVariable, std::vector{0.5}, std::vector{3.0});
    EXPECT_DOUBLE_EQ(estimate_at(process, {0.5}).mean, 3.0);
    EXPECT_DOUBLE_EQ(estimate_at(process, {1.0}).mean, 3.0);
    EXPECT_NEAR(estimate_at(process, {0.5}).deviation, std::sqrt(1 - 1 / (1 + kNoise)), 1e-12);
    EXPECT_NEAR(estimate_at(process, {100.0}).deviation, 1, 1e-12);
}

// Two values 4 apart are -1 and 1 after normalising, with a deviation of 2. Their covariance [[1 +
// a, k], [k, 1 + a]] is inverted by hand. The less they correlate, the more probable they are.
TEST(GaussianProcess, TwoValuesGiveTheMeanAndDeviationOfTheClosedForm) {
    const GaussianProcess process(kOneVariable, std::vector{0.0, kShortest}, std::vector{3.0, 7.0});
    const double k = matern(1);
    const double variance = 1 + kNoise;
    for (const double x : {0.0, 0.3, 0.5, 1.0, 2.0}) {
        const double to_first = matern(std::abs(x));
        const double to_second = matern(std::abs(x - 1));
        const double explained = (variance * (to_first * to_first + to_second * to_second) -
                                  2 * k * to_first * to_second) /
                                 (variance * variance - k * k);
        const ProcessEstimate there = estimate_at(process, {x * kShortest});
        EXPECT_NEAR(there.mean, 5 + 2 * (to_second - to_first) / (variance - k), 1e-12) << x;
        EXPECT_NEAR(there.deviation, 2 * std::sqrt(1 - explained), 1e-12) << x;
    }
}

TEST(GaussianProcess, DistanceCountsAllVariables) {
    const GaussianProcess process({.n_variables = 2, .noise = kNoise}, std::vector{0.1, 0.2},
                                  std::vector{1.0});
    // Steps of 0.03 and 0.04. The length scale grows with the diagonal of the square.
    const double covariance = matern(0.05 / (kShortest * std::sqrt(2.0)));
    EXPECT_NEAR(estimate_at(process, {0.13, 0.24}).deviation,
                std::sqrt(1 - covariance * covariance / (1 + kNoise)), 1e-7);
}

TEST(GaussianProcess, EstimatesOfABatchEqualThoseOfSinglePoints) {
    const GaussianProcess process({.n_variables = 2}, std::vector{0.1, 0.2, 0.9, 0.4, 0.3, 0.8},
                                  std::vector{1.0, 4.0, 2.0});
    const auto both = process.estimate(std::vector{0.5, 0.5, 0.9, 0.5});
    ASSERT_EQ(both.size(), 2U);
    EXPECT_DOUBLE_EQ(both[0].mean, estimate_at(process, {0.5, 0.5}).mean);
    EXPECT_DOUBLE_EQ(both[1].mean, estimate_at(process, {0.9, 0.5}).mean);
    EXPECT_DOUBLE_EQ(both[1].deviation, estimate_at(process, {0.9, 0.5}).deviation);
}

TEST(GaussianProcess, PointsMayRepeat) {
    const GaussianProcess process(kOneVariable, std::vector{0.5, 0.5}, std::vector{1.0, 3.0});
    EXPECT_NEAR(estimate_at(process, {0.5}).mean, 2, 1e-12);
    EXPECT_NEAR(estimate_at(process, {0.5}).deviation, std::sqrt(1 - 2 / (2 + kNoise)), 1e-7);
}

// The uncertainty a quarter beyond the last of 21 values, as a share of their deviation. It is
// below 0.25 with a length scale of 1 or more, above 0.79 with one of 0.25 or less.
double doubt_beyond(double (*function)(double)) {
    std::vector<double> points;
    std::vector<double> values;
    double mean = 0;
    for (int i = 0; i <= 20; ++i) {
        points.push_back(i / 20.0);
        values.push_back(function(points.back()));
        mean += values.back() / 21;
    }
    double variance = 0;
    for (const double value : values) {
        variance += (value - mean) * (value - mean) / 21;
    }
    const GaussianProcess process({.n_variables = 1}, points, values);
    return estimate_at(process, {1.25}).deviation / std::sqrt(variance);
}

TEST(GaussianProcess, LengthScaleFollowsHowFastValuesChange) {
    EXPECT_LT(doubt_beyond([](double x) { return x; }), 0.25);
    EXPECT_GT(doubt_beyond([](double x) { return std::sin(20 * x); }), 0.79);
}

}  // namespace
}  // namespace knap::gaussian_process_test
