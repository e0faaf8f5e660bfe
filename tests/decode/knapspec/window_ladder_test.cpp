#include "decode/knapspec/window_ladder.h"

#include <vector>

#include <gtest/gtest.h>

namespace knap::window_ladder_test {
namespace {

std::vector<double> rates(const std::vector<WindowEvidence>& windows) {
    std::vector<double> rates;
    for (const AcceptancePrior& belief : beliefs_from_others(windows)) {
        rates.push_back(belief.accepted / (belief.accepted + belief.rejected));
    }
    return rates;
}

double weight(const AcceptancePrior& belief) {
    return belief.accepted + belief.rejected;
}

std::vector<WindowEvidence> five() {
    return {{.recent = 64}, {.recent = 128}, {.recent = 256}, {.recent = 512}, {.recent = 1024}};
}

TEST(WindowLadder, BeliefsRiseWithTheWindow) {
    const std::vector<double> before = rates(five());
    for (std::size_t i = 1; i < before.size(); ++i) {
        EXPECT_GT(before[i], before[i - 1]);
    }
    EXPECT_NEAR(before.front(), 0.80, 0.01);
    EXPECT_NEAR(before.back(), 0.91, 0.01);
}

TEST(WindowLadder, EvidenceSpreadsToBothSidesAndFadesWithDistance) {
    const std::vector<double> before = rates(five());
    auto windows = five();
    windows[2].accepted = 60;
    windows[2].judged = 100;
    const std::vector<double> after = rates(windows);
    EXPECT_NEAR(after[2], before[2], 1e-9) << "not to itself";
    for (const std::size_t i : {0u, 1u, 3u, 4u}) {
        EXPECT_LT(after[i], before[i] - 0.02) << i;
    }
    EXPECT_LT(after[1], 0.62);
    EXPECT_LT(after[3], after[4]);
    EXPECT_GT(after[3], 0.6) << "a larger window accepts more";
}

TEST(WindowLadder, MoreEvidenceWeighsMore) {
    auto few = five();
    few[1] = {.recent = 128, .accepted = 2, .judged = 4};
    auto many = five();
    many[1] = {.recent = 128, .accepted = 50, .judged = 100};
    EXPECT_GT(rates(few)[2], rates(many)[2]);
    EXPECT_LT(weight(beliefs_from_others(few)[2]), weight(beliefs_from_others(many)[2]));
    EXPECT_LE(weight(beliefs_from_others(many)[2]), 12);
}

TEST(WindowLadder, ExtremesStayFinite) {
    auto windows = five();
    for (WindowEvidence& window : windows) {
        window.accepted = window.judged = 1e4;
    }
    for (const double rate : rates(windows)) {
        EXPECT_GT(rate, 0.98);
        EXPECT_LT(rate, 1);
    }
    for (WindowEvidence& window : windows) {
        window.accepted = 0;
    }
    for (const double rate : rates(windows)) {
        EXPECT_GT(rate, 0);
        EXPECT_LT(rate, 0.02);
    }
    EXPECT_TRUE(beliefs_from_others({}).empty());
    EXPECT_EQ(rates({{.recent = 7}}).size(), 1u);
    EXPECT_EQ(rates({{.recent = 64, .accepted = 1, .judged = 2}, {.recent = 64}}).size(), 2u);
}

}  // namespace
}  // namespace knap::window_ladder_test
