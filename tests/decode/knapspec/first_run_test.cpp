// A first run, without a profile and without anything learned: how soon `knapspec` knows what
// drafts cost, and what that takes, on simulated answers and machines.
#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "decode/strategy.h"
#include "support/simulated_answer.h"
#include "support/strategy_rig.h"

namespace knap::test::first_run_test {
namespace {

constexpr int kLayers = 4;
// Of the time of the answer: what passes may take that are measured, and that with what drafts may
// lose.
constexpr double kMostMeasured = 0.045;
constexpr double kMost = 0.08;

struct Measured {
    Probe probe;
    double ms = 0;
    int round = 0;
};

// Counts rounds.
class Watched final : public Strategy {
  public:
    explicit Watched(std::unique_ptr<Strategy> strategy) : strategy_(std::move(strategy)) {}

    void begin(const RequestStart& request) override { strategy_->begin(request); }
    Proposal propose(const RoundState& state) override {
        ++n_rounds;
        Proposal proposal = strategy_->propose(state);
        if (first_copy == 0 && std::holds_alternative<DraftTokens>(proposal.draft)) {
            first_copy = n_rounds;
        }
        return proposal;
    }
    void observe(const RoundOutcome& outcome) override { strategy_->observe(outcome); }

    int n_rounds = 0;
    int first_copy = 0;  // the round that drafted one; 0: none

  private:
    std::unique_ptr<Strategy> strategy_;
};

struct Text {
    std::size_t n_prompt = 0;
    std::size_t n_answer = 0;
    double often = 0;  // it goes back to earlier text
};

class FirstRun : public ::testing::TestWithParam<double> {
  protected:
    FirstRun() {
        rig_.trees_are_exact = true;
        machine_.machine = slow_machine(GetParam());
    }

    // Steps of a few tenths of a second: what the strategy itself takes is nothing beside them.
    static FakeMachine slow_machine(double row_price) {
        FakeMachine machine = long_context_machine(kLayers, row_price);
        for (double* part : {&machine.fixed_ms, &machine.head_ms, &machine.cache_row_ms,
                             &machine.attention_ms[0], &machine.mlp_ms[0]}) {
            *part *= 100;
        }
        return machine;
    }

    void write(const Text& length) {
        const auto text = repetitive(length.n_prompt + length.n_answer, length.often, 20, 1);
        const auto split = text.begin() + static_cast<std::ptrdiff_t>(length.n_prompt);
        const SimulatedAnswer answer{.prompt = {text.begin(), split},
                                     .answer = {split, text.end()},
                                     .acceptance = [](int, std::size_t) { return 0.8; }};
        measured_.clear();
        StrategyParts parts = rig_.parts();
        parts.measure = [&](const Probe& probe) {
            const double ms = machine_.machine.ms(probe);
            measured_.push_back({.probe = probe, .ms = ms, .round = watched_->n_rounds});
            return PassTime{.ms = ms};
        };
        watched_ = std::make_unique<Watched>(make_strategy({.strategy = "knapspec"}, parts));
        writing_ms_ = write_answer(*watched_, answer, machine_).ms;
        plain_ms_ =
            write_answer(*make_strategy(plain_decoding(), rig_.parts()), answer, machine_).ms;
    }

    // The round in which it was measured; 0: never.
    template <typename IsWanted>
    int round_of(const IsWanted& is_wanted) const {
        const auto found = std::ranges::find_if(measured_, is_wanted, &Measured::probe);
        return found == measured_.end() ? 0 : found->round;
    }
    double measuring_ms() const {
        return std::accumulate(measured_.begin(), measured_.end(), 0.0,
                               [](double sum, const Measured& one) { return sum + one.ms; });
    }

    StrategyRig rig_;
    SimulatedMachine machine_;
    std::unique_ptr<Watched> watched_;
    std::vector<Measured> measured_;
    double writing_ms_ = 0;
    double plain_ms_ = 0;
};

bool has_rows(const Probe& probe) {
    return probe.plan.is_full() && probe.n_rows >= 4;
}

bool has_window(const Probe& probe) {
    return !distinct_windows(probe.plan).empty();
}

TEST_P(FirstRun, KnowsWhatDraftsCostAfterThirtyRounds) {
    for (const std::size_t n_answer : {150u, 512u, 4000u}) {
        write({.n_prompt = 1000, .n_answer = n_answer});
        // A copy shows what rows cost, too.
        const int probed = round_of(has_rows);
        const int copied = watched_->first_copy;
        const int known =
            probed == 0 || copied == 0 ? std::max(probed, copied) : std::min(probed, copied);
        EXPECT_GT(known, 0) << n_answer;
        EXPECT_LE(known, 30) << n_answer;
        ASSERT_GT(round_of(has_window), 0) << n_answer;
        EXPECT_LE(round_of(has_window), 30) << n_answer;
    }
}

TEST_P(FirstRun, TakesAFewPercentOfTheAnswer) {
    for (const std::size_t n_prompt : {60u, 1000u}) {
        for (const std::size_t n_answer : {8u, 30u, 64u, 99u, 110u, 150u, 256u, 512u, 1500u}) {
            for (const double often : {0.0, 0.1}) {
                write({.n_prompt = n_prompt, .n_answer = n_answer, .often = often});
                EXPECT_LE(measuring_ms(), kMostMeasured * plain_ms_)
                    << n_answer << " tokens after " << n_prompt;
                EXPECT_LE(writing_ms_ + measuring_ms(), (1 + kMost) * plain_ms_)
                    << n_answer << " tokens after " << n_prompt;
            }
        }
    }
}

TEST_P(FirstRun, ShortAnswersBorrowNothing) {
    for (const std::size_t n_answer : {8u, 30u, 64u}) {
        write({.n_prompt = 1000, .n_answer = n_answer});
        EXPECT_LE(measuring_ms(), 0.01 * plain_ms_) << n_answer;
    }
}

// Where the model is so fast that choosing takes longer than a step, nothing is left for searches.
TEST_P(FirstRun, ChoosingIsPaidForFirst) {
    for (double* part :
         {&machine_.machine.fixed_ms, &machine_.machine.head_ms, &machine_.machine.cache_row_ms,
          &machine_.machine.attention_ms[0], &machine_.machine.mlp_ms[0]}) {
        *part *= 1e-7;
    }
    write({.n_prompt = 1000, .n_answer = 2000});
    EXPECT_TRUE(measured_.empty());
}

// The answer ends long before its limit.
TEST_P(FirstRun, AnAnswerThatEndsEarlyLosesAPartOfWhatItHas) {
    write({.n_prompt = 1000, .n_answer = 4000});
    const double step_ms = plain_ms_ / 4000;
    double spent_ms = 0;
    for (const Measured& one : measured_) {
        spent_ms += one.ms;
        EXPECT_LE(spent_ms, (0.25 + 0.01) * one.round * 1.1 * step_ms) << one.round;
    }
}

INSTANTIATE_TEST_SUITE_P(PricesOfRows,
                         FirstRun,
                         ::testing::Values(0.05, 0.13, 0.25, 0.6),
                         [](const auto& price) {
                             return std::to_string(static_cast<int>(100 * price.param));
                         });

}  // namespace
}  // namespace knap::test::first_run_test
