#include "decode/knapspec/match_acceptance.h"

#include <gtest/gtest.h>

namespace knap::match_acceptance_test {
namespace {

TEST(MatchAcceptance, LongerMatchesStartWithHigherAcceptance) {
    const MatchAcceptance acceptance;
    for (int length = 2; length < 20; ++length) {
        EXPECT_LE(acceptance.at(length), acceptance.at(length + 1)) << length;
    }
    EXPECT_LT(acceptance.at(2), 0.3);
    EXPECT_GT(acceptance.at(32), 0.8);
}

TEST(MatchAcceptance, ObservationsReplaceThePrior) {
    MatchAcceptance acceptance;
    for (int i = 0; i < 200; ++i) {
        acceptance.observe(2, true);
        acceptance.observe(20, false);
    }
    EXPECT_GT(acceptance.at(2), 0.9);
    EXPECT_LT(acceptance.at(20), 0.1);
    EXPECT_EQ(acceptance.at(20), acceptance.at(16)) << "16 and more are one bin";
    EXPECT_NEAR(acceptance.at(3), MatchAcceptance().at(3), 1e-12) << "other lengths learn nothing";
}

TEST(MatchAcceptance, OldObservationsFade) {
    MatchAcceptance acceptance;
    for (int i = 0; i < 1000; ++i) {
        acceptance.observe(5, false);
    }
    for (int i = 0; i < 300; ++i) {
        acceptance.observe(5, true);
    }
    EXPECT_GT(acceptance.at(5), 0.85);
}

TEST(MatchAcceptance, ACopyLengthensItsOwnMatch) {
    const MatchAcceptance acceptance;
    const AcceptanceByDepth copy = acceptance.of_copy(2, 4);
    ASSERT_EQ(copy.first.size(), 4u);
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(copy.at(i), acceptance.at(2 + i)) << i;
    }
    EXPECT_EQ(copy.at(4), 0) << "nothing is copied beyond";
}

TEST(MatchAcceptance, FadingMovesBackTowardsThePrior) {
    MatchAcceptance acceptance;
    for (int i = 0; i < 8; ++i) {
        acceptance.observe(2, true);
    }
    const double before = acceptance.at(2);
    acceptance.fade();
    EXPECT_LT(acceptance.at(2), before);
    EXPECT_GT(acceptance.at(2), MatchAcceptance().at(2));
}

}  // namespace
}  // namespace knap::match_acceptance_test
