#include "decode/knapspec/speed_ledger.h"

#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "decode/knapspec/suspension.h"
#include "search/throughput.h"

namespace knap::speed_ledger_test {
namespace {

constexpr double kStep = 10;

// A round that took `n_steps` for `n_tokens`.
RoundTime round(double n_steps, double n_tokens) {
    return {.ms = n_steps * kStep, .plain_ms = n_tokens * kStep, .step_ms = kStep};
}

SpeedLedger after(int n_rounds, double n_steps, double n_tokens) {
    SpeedLedger ledger;
    for (int i = 0; i < n_rounds; ++i) {
        ledger.add(round(n_steps, n_tokens));
    }
    return ledger;
}

// How many such rounds it takes to call the source a loser, up to 1000.
int rounds_to_lose(double n_steps, double n_tokens) {
    SpeedLedger ledger;
    int n_rounds = 0;
    while (n_rounds < 1000 && !ledger.is_losing()) {
        ledger.add(round(n_steps, n_tokens));
        ++n_rounds;
    }
    return n_rounds;
}

TEST(SpeedLedger, IsTheRatioOfPlainTimeToTimeTaken) {
    EXPECT_DOUBLE_EQ(SpeedLedger().speedup(), 1);
    EXPECT_NEAR(after(20, 2, 3).speedup(), 1.5, 1e-12);
    EXPECT_NEAR(after(20, 5, 4).speedup(), 0.8, 1e-12);
}

TEST(SpeedLedger, LargeLossesAreNoticedSoonAndSmallOnesLater) {
    EXPECT_EQ(rounds_to_lose(3, 1), 1) << "two steps lost at once";
    EXPECT_EQ(rounds_to_lose(2, 1), 2);
    EXPECT_EQ(rounds_to_lose(1.5, 1), 4);
    EXPECT_NEAR(rounds_to_lose(1.1, 1), 15, 1);
    EXPECT_EQ(rounds_to_lose(1, 1.01), 1000) << "never";
}

TEST(SpeedLedger, LossesBetweenGainsAreForgiven) {
    SpeedLedger ledger;
    for (int i = 0; i < 500; ++i) {
        ledger.add(i % 3 == 0 ? round(1.3, 3) : round(1.3, 1));
        ASSERT_FALSE(ledger.is_losing()) << i;
    }
}

// Of many sources that draft ten tokens, the share that is called a loser within so many rounds.
// The length was chosen for an acceptance of 0.95.
double share_of_losers(double acceptance, int n_rounds) {
    constexpr int kSources = 2000;
    constexpr int kLength = 10;
    const double n_steps = 1 + kLength * (0.35 + 0.1);  // a draft step, a row
    const double variance = variance_of_tokens({.rest = 0.95}, kLength);
    std::mt19937_64 engine(1);
    std::bernoulli_distribution is_right(acceptance);
    int n_losers = 0;
    for (int source = 0; source < kSources; ++source) {
        SpeedLedger ledger;
        for (int i = 0; i < n_rounds && !ledger.is_losing(); ++i) {
            int n_tokens = 1;
            while (n_tokens <= kLength && is_right(engine)) {
                ++n_tokens;
            }
            RoundTime time = round(n_steps, n_tokens);
            time.variance = variance;
            ledger.add(time);
        }
        n_losers += ledger.is_losing() ? 1 : 0;
    }
    return static_cast<double>(n_losers) / kSources;
}

TEST(SpeedLedger, LongDraftsMayLoseTheirFirstRounds) {
    EXPECT_EQ(share_of_losers(0.95, 1), 0) << "one in seven loses more than two steps";
    EXPECT_LT(share_of_losers(0.95, 10), 0.02);
    EXPECT_GT(share_of_losers(0.5, 5), 0.95) << "it is noticed";
}

TEST(SpeedLedger, EarlierGainsDoNotPayForLosses) {
    SpeedLedger ledger = after(500, 1, 3);
    int n_rounds = 0;
    while (!ledger.is_losing()) {
        ledger.add(round(1.5, 1));
        ASSERT_LT(++n_rounds, 20);
    }
    EXPECT_GT(n_rounds, 3) << "after so many gains, more proof is needed";
}

TEST(SpeedLedger, ImpossibleTimesAreIgnored) {
    SpeedLedger ledger = after(10, 1, 2);
    for (const double ms : {-5.0, 0.0, std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()}) {
        ledger.add({.ms = ms, .plain_ms = 10, .step_ms = 10});
        ledger.add({.ms = 10, .plain_ms = ms, .step_ms = 10});
        ledger.add({.ms = 10, .plain_ms = 10, .step_ms = ms});
    }
    EXPECT_NEAR(ledger.speedup(), 2, 1e-12);
    EXPECT_FALSE(ledger.is_losing());
}

TEST(Suspension, DoublesUpToABound) {
    EXPECT_EQ(suspension_tokens(0), 64u);
    EXPECT_EQ(suspension_tokens(1), 128u);
    EXPECT_EQ(suspension_tokens(5), 2048u);
    EXPECT_EQ(suspension_tokens(1000), 2048u);
}

}  // namespace
}  // namespace knap::speed_ledger_test
