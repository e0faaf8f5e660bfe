#include "tools/measure/report/bench_speedup.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace knap::bench_speedup_test {
namespace {

TEST(BenchSpeedup, IsTheGeometricMeanOfTurns) {
    const std::vector<BenchTurn> turns{{.decode_ms = 10, .plain_ms = 20, .n_generated = 3},
                                       {.decode_ms = 10, .plain_ms = 80, .n_generated = 3}};
    const BenchSpeedup found = speedup_of(turns);
    EXPECT_NEAR(found.mean, 4, 1e-12);
    // Logarithms log 2 and log 8: standard error log 2, t of one degree of freedom.
    EXPECT_NEAR(*found.high, 4 * std::pow(2, 12.706), 1e-6 * *found.high);
    EXPECT_NEAR(*found.low, 4 / std::pow(2, 12.706), 1e-12);
    const BenchSpeedup one = speedup_of(std::span(turns).first(1));
    EXPECT_EQ(one, (BenchSpeedup{.mean = one.mean}));
    EXPECT_NEAR(one.mean, 2, 1e-12);
}

// (100 + 20) / (100 + 10) and (100 + 80) / (100 + 10).
TEST(BenchSpeedup, OfARequestIncludesThePrefill) {
    const std::vector<BenchTurn> turns{{.decode_ms = 10, .plain_ms = 20, .n_generated = 3},
                                       {.decode_ms = 10, .plain_ms = 80, .n_generated = 3}};
    const BenchSpeedup found = request_speedup_of(turns, 100, 100);
    EXPECT_NEAR(found.mean, std::sqrt(120.0 * 180) / 110, 1e-12);
    EXPECT_GT(*found.high, found.mean);
    EXPECT_LT(*found.low, found.mean);
    EXPECT_FALSE(request_speedup_of(std::span(turns).first(1), 100, 100).low);
}

TEST(BenchSpeedup, OfARequestAllowsDifferentPrefillTimes) {
    const std::vector<BenchTurn> turns{{.decode_ms = 10, .plain_ms = 20, .n_generated = 3}};
    EXPECT_DOUBLE_EQ(request_speedup_of(turns, 190, 80).mean, 0.5);
    EXPECT_DOUBLE_EQ(request_speedup_of(turns, 40, 80).mean, 2);
}

}  // namespace
}  // namespace knap::bench_speedup_test
