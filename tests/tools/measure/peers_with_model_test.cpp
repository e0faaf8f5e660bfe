// llama.cpp's drafts on the default model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bench_example.h"
#include "support/default_model.h"
#include "tools/measure/strategy_race.h"
#include "tools/peer/peer_names.h"

namespace knap::peers_with_model_test {
namespace {

constexpr int kTokens = 128;

// A line that the model goes on repeating.
BenchPrompt repeated_line(const Engine& engine) {
    std::string text;
    for (int i = 0; i < 8; ++i) {
        text += "The old bridge over the river is closed to carts until the end of June.\n";
    }
    return test::synthetic_prompt(engine, text);
}

class PeersWithModel : public ::testing::TestWithParam<float> {};

TEST_P(PeersWithModel, DraftWhatTheyHaveRead) {
    Engine engine({.model_path = test::default_model(), .n_ctx = 1024, .n_threads = 1});
    RaceOptions options{.n_predict = kTokens, .n_turns = 1};
    options.peers = {kPeerNames.begin(), kPeerNames.end()};
    options.sampling.temperature = GetParam();
    const auto outcome = StrategyRace(engine, options, {}).measure(repeated_line(engine));
    ASSERT_TRUE(outcome);
    ASSERT_EQ(outcome->rows.size(), 1 + kPeerNames.size());
    for (const BenchRow& row : std::span(outcome->rows).subspan(2)) {
        EXPECT_GT(row.n_accepted, kTokens / 2) << row.strategy;
        EXPECT_GT(*row.acceptance_rate, 0.8) << row.strategy;
        EXPECT_EQ(row.rounds + row.n_accepted, kTokens - 1) << row.strategy;
        EXPECT_EQ(row.identical_to_knap.has_value(), GetParam() == 0) << row.strategy;
        if (row.first_difference) {
            EXPECT_LT(*row.first_difference->gap, kNearTieGap) << row.strategy;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Temperatures,
                         PeersWithModel,
                         ::testing::Values(0.0f, 0.3f),
                         [](const auto& test) { return test.param == 0 ? "Greedy" : "Sampled"; });

}  // namespace
}  // namespace knap::peers_with_model_test
