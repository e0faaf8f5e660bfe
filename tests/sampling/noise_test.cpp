#include "sampling/noise.h"

#include <array>
#include <bit>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "support/gumbel.h"

namespace knap::noise_test {
namespace {

constexpr double kUniformMean = 0.5;
constexpr double kUniformDeviation = 0.28867513459481287;  // sqrt(1/12)

TEST(Noise, DependsOnlyOnSeedPositionAndToken) {
    const auto noise = [](std::uint64_t seed, std::int64_t position, Token token) {
        return PositionNoise(seed, position).uniform(token);
    };
    EXPECT_EQ(noise(1, 2, 3), noise(1, 2, 3));
    EXPECT_NE(noise(1, 2, 3), noise(2, 2, 3));
    EXPECT_NE(noise(1, 2, 3), noise(1, 3, 3));
    EXPECT_NE(noise(1, 2, 3), noise(1, 2, 4));
    EXPECT_NE(noise(1, 2, 3), noise(3, 2, 1));
    EXPECT_NE(noise(0, 0, 1), noise(0, 1, 0));
}

// Releases must not change the text of a seed, so these values are fixed.
TEST(Noise, IsTheSameOnEveryPlatform) {
    EXPECT_EQ(PositionNoise(0, 0).uniform(0), 0x1.1c13ade1c7e5cp-3);
    EXPECT_EQ(PositionNoise(42, 100).uniform(7), 0x1.e03b09b704e45p-1);
    EXPECT_EQ(PositionNoise(~std::uint64_t{0}, 1'000'000'000'000).uniform(151'935),
              0x1.53cd05c6c17fep-2);
}

TEST(Noise, UniformStaysInsideTheOpenInterval) {
    for (Token token = 0; token < 1'000'000; ++token) {
        const double u = PositionNoise(0, 0).uniform(token);
        ASSERT_GT(u, 0.0);
        ASSERT_LT(u, 1.0);
        ASSERT_TRUE(std::isfinite(-std::log(-std::log(u))));
    }
}

// The distance of the mean of n values from the expected mean, in standard errors.
double mean_error(int n, double mean, double deviation, const std::function<double(int)>& value) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) {
        sum += value(i);
    }
    return (sum / n - mean) / (deviation / std::sqrt(n));
}

TEST(Noise, GumbelHasItsMeanAndVariance) {
    const double mean = 0.57721566490153286;     // Euler's constant
    const double variance = 1.6449340668482264;  // pi^2 / 6
    const auto value = [](int i) { return test::gumbel(PositionNoise(5, i % 1000), i / 1000); };
    EXPECT_LT(std::abs(mean_error(200'000, mean, std::sqrt(variance), value)), 4.0);
    // The fourth central moment is 5.4 variance^2, so the variance of the squared deviation is 4.4
    // variance^2.
    const auto square = [&](int i) { return std::pow(value(i) - mean, 2); };
    EXPECT_LT(std::abs(mean_error(200'000, variance, std::sqrt(4.4) * variance, square)), 4.0);
}

TEST(Noise, IsUniformAlongEveryCoordinate) {
    constexpr int kBins = 64;
    constexpr int kPerBin = 1000;
    const std::array<std::function<double(int)>, 3> walks = {
        [](int i) { return PositionNoise(static_cast<std::uint64_t>(i), 10).uniform(20); },
        [](int i) { return PositionNoise(3, i).uniform(20); },
        [](int i) { return PositionNoise(3, 10).uniform(i); },
    };
    for (const auto& walk : walks) {
        std::array<int, kBins> counts{};
        for (int i = 0; i < kBins * kPerBin; ++i) {
            ++counts[static_cast<std::size_t>(walk(i) * kBins)];
        }
        double chi_square = 0.0;
        for (int count : counts) {
            chi_square += std::pow(count - kPerBin, 2) / kPerBin;
        }
        // 63 degrees of freedom: mean 63, deviation 11.2.
        EXPECT_LT(chi_square, 63 + 4 * 11.2);
        EXPECT_GT(chi_square, 63 - 4 * 11.2);
    }
}

TEST(Noise, NeighboursAreUncorrelated) {
    const auto uniform = [](int seed, int position, Token token) {
        return PositionNoise(static_cast<std::uint64_t>(seed), position).uniform(token);
    };
    constexpr int kPairs = 100'000;
    for (int lag : {1, 2, 256, 4096}) {
        const auto product_error = [&](const auto& other) {
            return mean_error(kPairs, 0.0, kUniformDeviation * kUniformDeviation, [&](int i) {
                return (uniform(1, i, 77) - kUniformMean) * (other(i) - kUniformMean);
            });
        };
        EXPECT_LT(std::abs(product_error([&](int i) { return uniform(1 + lag, i, 77); })), 4.0)
            << lag;
        EXPECT_LT(std::abs(product_error([&](int i) { return uniform(1, i + lag, 77); })), 4.0)
            << lag;
        EXPECT_LT(std::abs(product_error([&](int i) { return uniform(1, i, 77 + lag); })), 4.0)
            << lag;
    }
}

TEST(Noise, PurposesAndAttemptsAreIndependent) {
    const std::array<std::function<double(int)>, 6> streams = {
        [](int i) { return PositionNoise(1, i).uniform(77); },
        [](int i) { return PositionNoise(1, i).independent(NoisePurpose::draft).uniform(77); },
        [](int i) { return PositionNoise(1, i).independent(NoisePurpose::draft, 1).uniform(77); },
        [](int i) { return PositionNoise(1, i).independent(NoisePurpose::draft, 2).uniform(77); },
        [](int i) { return PositionNoise(1, i).independent(NoisePurpose::acceptance).uniform(77); },
        [](int i) { return PositionNoise(1, i).independent(NoisePurpose::assumption).uniform(77); },
    };
    constexpr int kPairs = 50'000;
    for (std::size_t a = 0; a < streams.size(); ++a) {
        EXPECT_LT(std::abs(mean_error(kPairs, kUniformMean, kUniformDeviation, streams[a])), 4.0);
        for (std::size_t b = 0; b < a; ++b) {
            const auto product = [&](int i) {
                return (streams[a](i) - kUniformMean) * (streams[b](i) - kUniformMean);
            };
            const double deviation = kUniformDeviation * kUniformDeviation;
            EXPECT_LT(std::abs(mean_error(kPairs, 0.0, deviation, product)), 4.0) << a << b;
        }
    }
}

TEST(Noise, OneInputBitChangesHalfOfTheOutputBits) {
    const auto bits = [](std::uint64_t seed, std::int64_t position, Token token) {
        return static_cast<std::uint64_t>(PositionNoise(seed, position).uniform(token) * 0x1p52);
    };
    for (int bit = 0; bit < 30; ++bit) {
        int n_changed = 0;
        for (int i = 0; i < 1000; ++i) {
            n_changed += std::popcount(bits(9, i, 5) ^ bits(9, i, 5 ^ (1 << bit)));
            n_changed += std::popcount(bits(9, i, 5) ^ bits(9, i ^ (std::int64_t{1} << bit), 5));
            n_changed += std::popcount(bits(9, i, 5) ^ bits(9 ^ (std::uint64_t{1} << bit), i, 5));
        }
        EXPECT_NEAR(n_changed / 3000.0, 26.0, 0.5) << bit;
    }
}

}  // namespace
}  // namespace knap::noise_test
