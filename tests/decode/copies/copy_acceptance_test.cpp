#include "decode/copies/copy_acceptance.h"

#include <gtest/gtest.h>

namespace knap::copy_acceptance_test {
namespace {

using Standing = CopyEvidence::Standing;

CopyEvidence match_of(int length, Standing standing = Standing::leading) {
    return {.length = length, .standing = standing};
}

TEST(CopyAcceptance, LongerMatchesStartWithHigherAcceptance) {
    const CopyAcceptance acceptance;
    for (int length = 1; length < 20; ++length) {
        EXPECT_LE(acceptance.at(match_of(length)), acceptance.at(match_of(length + 1))) << length;
    }
    EXPECT_LT(acceptance.at(match_of(1)), 0.3);
    EXPECT_GT(acceptance.at(match_of(32)), 0.8);
}

TEST(CopyAcceptance, EarlierRunsCountUntilTheTextSaysOtherwise) {
    CopyAcceptance::Table notes{};
    CopyAcceptance earlier;
    earlier.note_in(notes);
    for (int i = 0; i < 500; ++i) {
        earlier.observe(match_of(1), true);
    }
    CopyAcceptance later;
    later.recall(notes);
    EXPECT_GT(later.at(match_of(1)), 0.75);
    EXPECT_EQ(later.at(match_of(2)), CopyAcceptance().at(match_of(2))) << "nothing was seen";
    for (int i = 0; i < 40; ++i) {
        later.observe(match_of(1), false);
    }
    EXPECT_LT(later.at(match_of(1)), 0.35);
}

TEST(CopyAcceptance, AgreementCountsFromTheStart) {
    const CopyAcceptance acceptance;
    for (const int length : {1, 2, 4, 8, 32}) {
        const double leading = acceptance.at(match_of(length));
        EXPECT_GT(acceptance.at(match_of(length, Standing::agreed)), leading + 0.03) << length;
        EXPECT_LT(acceptance.at(match_of(length, Standing::contested)), leading - 0.03) << length;
        EXPECT_LT(acceptance.at(match_of(length, Standing::second)), 0.3) << length;
        EXPECT_LT(acceptance.at(match_of(length, Standing::rare)), 0.1) << length;
    }
}

TEST(CopyAcceptance, ObservationsReplaceTheBelief) {
    CopyAcceptance acceptance;
    for (int i = 0; i < 200; ++i) {
        acceptance.observe(match_of(2), true);
        acceptance.observe(match_of(20, Standing::agreed), false);
    }
    EXPECT_GT(acceptance.at(match_of(2)), 0.9);
    EXPECT_LT(acceptance.at(match_of(20, Standing::agreed)), 0.1);
    EXPECT_EQ(acceptance.at(match_of(20, Standing::agreed)),
              acceptance.at(match_of(16, Standing::agreed)))
        << "16 and more are one bin";
    const CopyAcceptance fresh;
    EXPECT_EQ(acceptance.at(match_of(3)), fresh.at(match_of(3))) << "another length";
    EXPECT_EQ(acceptance.at(match_of(20)), fresh.at(match_of(20))) << "another standing";
}

TEST(CopyAcceptance, OldObservationsFade) {
    CopyAcceptance acceptance;
    for (int i = 0; i < 1000; ++i) {
        acceptance.observe(match_of(5), false);
    }
    for (int i = 0; i < 300; ++i) {
        acceptance.observe(match_of(5), true);
    }
    EXPECT_GT(acceptance.at(match_of(5)), 0.85);
}

TEST(CopyAcceptance, FadingMovesBackTowardsTheBelief) {
    CopyAcceptance acceptance;
    for (int i = 0; i < 8; ++i) {
        acceptance.observe(match_of(2), true);
    }
    const double before = acceptance.at(match_of(2));
    acceptance.fade();
    EXPECT_LT(acceptance.at(match_of(2)), before);
    EXPECT_GT(acceptance.at(match_of(2)), CopyAcceptance().at(match_of(2)));
}

}  // namespace
}  // namespace knap::copy_acceptance_test
