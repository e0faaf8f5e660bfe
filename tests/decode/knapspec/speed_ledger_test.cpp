#include "decode/knapspec/speed_ledger.h"

#include <limits>

#include <gtest/gtest.h>

#include "decode/knapspec/suspension.h"

namespace knap::speed_ledger_test {
namespace {

SpeedLedger after(int n_rounds, double ms, double plain_ms) {
    SpeedLedger ledger;
    for (int i = 0; i < n_rounds; ++i) {
        ledger.add(ms, plain_ms);
    }
    return ledger;
}

TEST(SpeedLedger, IsTheRatioOfPlainTimeToTimeTaken) {
    EXPECT_DOUBLE_EQ(SpeedLedger().speedup(), 1);
    EXPECT_NEAR(after(20, 10, 15).speedup(), 1.5, 1e-12);
    EXPECT_NEAR(after(20, 10, 8).speedup(), 0.8, 1e-12);
}

TEST(SpeedLedger, AFewBadRoundsProveNothing) {
    EXPECT_FALSE(after(7, 10, 8).is_losing());
    EXPECT_TRUE(after(8, 10, 8).is_losing());
    EXPECT_FALSE(after(3, 10, 5).is_losing());
    EXPECT_TRUE(after(4, 10, 5).is_losing()) << "half as fast needs less proof";
    EXPECT_FALSE(after(100, 10, 10.1).is_losing());
}

TEST(SpeedLedger, RecentRoundsWeighMost) {
    SpeedLedger ledger = after(200, 10, 20);
    for (int i = 0; i < 60; ++i) {
        ledger.add(10, 5);
    }
    EXPECT_TRUE(ledger.is_losing());
}

TEST(SpeedLedger, ImpossibleTimesAreIgnored) {
    SpeedLedger ledger = after(10, 10, 20);
    for (const double ms : {-5.0, 0.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
        ledger.add(ms, 10);
        ledger.add(10, ms);
    }
    EXPECT_NEAR(ledger.speedup(), 2, 1e-12);
}

TEST(SpeedLedger, ImpossibleTimesDoNotCountAsRounds) {
    SpeedLedger ledger = after(7, 10, 8);
    ledger.add(10, 0);
    EXPECT_FALSE(ledger.is_losing());
    ledger.add(10, 8);
    EXPECT_TRUE(ledger.is_losing());
}

TEST(Suspension, DoublesUpToABound) {
    EXPECT_EQ(suspension_tokens(0), 64u);
    EXPECT_EQ(suspension_tokens(1), 128u);
    EXPECT_EQ(suspension_tokens(5), 2048u);
    EXPECT_EQ(suspension_tokens(1000), 2048u);
}

}  // namespace
}  // namespace knap::speed_ledger_test
