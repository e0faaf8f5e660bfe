#include "decode/del/exit_statistics.h"

#include <vector>

#include <gtest/gtest.h>

namespace knap::exit_statistics_test {
namespace {

// Three layers, two of which can be exits.
class ThreeLayers : public ::testing::Test {
  protected:
    ExitStatistics statistics_{3, /*decay=*/0.5, /*max_length=*/17};
};

TEST_F(ThreeLayers, CountAgreementWithDecay) {
    // Layer 1 is right at the second of three rows, layer 2 at the first and the last.
    statistics_.add(std::vector<ShadowToken>{{7, 0.4f},
                                             {8, 0.6f},
                                             {7, 0.2f},  //
                                             {1, 0.9f},
                                             {7, 0.5f},
                                             {3, 0.7f}},
                    std::vector<Token>{1, 8, 3});
    EXPECT_DOUBLE_EQ(statistics_.acceptance(1), 1.0 / 3);
    EXPECT_DOUBLE_EQ(statistics_.acceptance(2), 2.0 / 3);
    EXPECT_FLOAT_EQ(statistics_.threshold(1), (0.6f + 0.3f) / 2);
    EXPECT_FLOAT_EQ(statistics_.threshold(2), (0.8f + 0.5f) / 2);
    // One more row halves the earlier counts: layer 1 has 0.5 + 1 matched and 1 missed, layer 2 has
    // 1 matched and 0.5 + 1 missed.
    statistics_.add(std::vector<ShadowToken>{{5, 0.8f}, {7, 0.2f}}, std::vector<Token>{5});
    EXPECT_DOUBLE_EQ(statistics_.acceptance(1), 1.5 / 2.5);
    EXPECT_DOUBLE_EQ(statistics_.acceptance(2), 1.0 / 2.5);
    EXPECT_FLOAT_EQ(statistics_.threshold(1), ((0.5f * 0.6f + 0.8f) / 1.5f + 0.3f) / 2);
    EXPECT_FLOAT_EQ(statistics_.threshold(2), (0.8f + (0.5f * 0.5f + 0.2f) / 1.5f) / 2);
}

TEST_F(ThreeLayers, HaveNoThresholdUntilBothOutcomesAreSeen) {
    EXPECT_EQ(statistics_.threshold(1), 0.0f);
    statistics_.add(std::vector<ShadowToken>{{5, 0.8f}, {7, 0.2f}}, std::vector<Token>{5});
    EXPECT_EQ(statistics_.threshold(1), 0.0f) << "never wrong";
    EXPECT_EQ(statistics_.threshold(2), 0.0f) << "never right";
    statistics_.clear();
    EXPECT_EQ(statistics_.acceptance(1), 0.0);
}

TEST_F(ThreeLayers, ExitAtTheFirstWhenNothingIsKnown) {
    const ExitChoice choice = statistics_.best();
    EXPECT_EQ(choice.n_layers, 1);
    EXPECT_EQ(choice.draft_length, 0);
    EXPECT_DOUBLE_EQ(choice.speed, 1);
}

// Ten layers; layer 5 always agrees, layer 2 in half of the rows. TPL of layer 5 at length 17 is
// 18 / (10 + 85); of layer 2 it is (1 + 1/2 + 1/4 + ...) / (10 + 2 g), largest at g = 1
// and g = 2: 1.5 / 12 = 1.75 / 14 = 0.125, below 18 / 95 = 0.189.
TEST(ExitStatistics, ChoosesTheMostTokensPerLayer) {
    ExitStatistics statistics(10, 0.95, 17);
    std::vector<ShadowToken> shadows;
    for (int layer = 1; layer < 10; ++layer) {
        shadows.push_back({layer == 5 ? 1 : 9, 0.5f});
        shadows.push_back({layer == 5 || layer == 2 ? 2 : 9, 0.5f});
    }
    statistics.add(shadows, std::vector<Token>{1, 2});
    const ExitChoice sure = statistics.best();
    EXPECT_EQ(sure.n_layers, 5);
    EXPECT_EQ(sure.draft_length, 17);
    EXPECT_NEAR(sure.speed, 10 * 18.0 / 95, 1e-12);

    ExitStatistics halves(10, 0.95, 17);
    for (ShadowToken& shadow : shadows) {
        shadow.token = shadow.token == 1 ? 9 : shadow.token;  // layer 5 is right in half, too
    }
    halves.add(shadows, std::vector<Token>{1, 2});
    const ExitChoice half = halves.best();
    EXPECT_EQ(half.n_layers, 2) << "the earlier of two that agree as often";
    EXPECT_EQ(half.draft_length, 1) << "the shorter of two that are as good";
    EXPECT_NEAR(half.speed, 10 * 1.5 / 12, 1e-12);
}

TEST(ExitStatistics, RatesDraftLengthsUpToTheMaximum) {
    ExitStatistics statistics(4, 0.95, 3);
    statistics.add(std::vector<ShadowToken>(3, {1, 0.5f}), std::vector<Token>{1});
    EXPECT_EQ(statistics.best().n_layers, 1);
    EXPECT_EQ(statistics.best().draft_length, 3);
}

}  // namespace
}  // namespace knap::exit_statistics_test
