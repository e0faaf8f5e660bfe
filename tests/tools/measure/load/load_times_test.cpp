#include "tools/measure/load/load_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::load_times_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(LoadTimes, ThroughputIsThatOfAllTokensUntilTheLast) {
    const LoadTimes times = load_times_of(std::vector<TokenTimes>{
        {.token_ms = {100, 110, 120}}, {.start_ms = 120, .token_ms = {180, 200}}});
    EXPECT_EQ(times.n_tokens, 5);
    EXPECT_EQ(times.wall_ms, 200);
    EXPECT_EQ(times.tokens_per_second, 25);
}

TEST(LoadTimes, TheFirstTokenCountsFromTheStartOfItsRequest) {
    const LoadTimes times = load_times_of(std::vector<TokenTimes>{
        {.start_ms = 0, .token_ms = {10}}, {.start_ms = 20, .token_ms = {50}}});
    EXPECT_EQ(times.first_median_ms, 20);
    EXPECT_DOUBLE_EQ(times.first_p95_ms, 29);
    EXPECT_EQ(times.gap_max_ms, 0) << "no request has two tokens";
}

TEST(LoadTimes, GapsAreThoseWithinRequests) {
    const LoadTimes times = load_times_of(
        std::vector<TokenTimes>{{.token_ms = {10, 12, 16}}, {.token_ms = {1000, 1000, 1100}}});
    EXPECT_EQ(times.gap_median_ms, 3);
    EXPECT_EQ(times.gap_max_ms, 100);
    EXPECT_GT(times.gap_p95_ms, 80);
    EXPECT_LT(times.gap_p95_ms, 100);
    EXPECT_THAT(gaps_of(std::vector<double>{1, 3, 7}), ElementsAre(2, 4));
    EXPECT_THAT(gaps_of(std::vector<double>{}), IsEmpty());
}

TEST(LoadTimes, RequestsWithoutTokensCountForNothing) {
    const std::vector<TokenTimes> one{{.token_ms = {10, 12, 16}}};
    const std::vector<TokenTimes> two{one.front(), {.start_ms = 5}};
    EXPECT_EQ(load_times_of(two), load_times_of(one));
}

// Between 20 and 40 both are being answered: three tokens of the first, two of the second.
TEST(LoadTimes, TheRateTogetherCountsWhileAllAreAnswered) {
    const std::vector<TokenTimes> both{{.token_ms = {5, 10, 25, 30, 40}},
                                       {.token_ms = {20, 25, 40, 50}}};
    EXPECT_EQ(rate_together(both), 5 / 0.02);
    const std::vector<TokenTimes> apart{{.token_ms = {5, 10}}, {.token_ms = {10, 20}}};
    EXPECT_FALSE(rate_together(apart));
}

}  // namespace
}  // namespace knap::load_times_test
