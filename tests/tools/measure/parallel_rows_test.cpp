#include "tools/measure/parallel_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::parallel_rows_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

Result answer(std::vector<Token> tokens, double decode_ms = 100) {
    Result result;
    result.n_prompt = 10;
    result.n_generated = static_cast<int>(tokens.size());
    result.tokens = std::move(tokens);
    result.timings.decode_ms = decode_ms;
    result.timings.prefill_ms = decode_ms / 2;
    return result;
}

// An answer whose last token comes after `wall_ms`.
ServedRequest served(const Result& result, double wall_ms) {
    ServedRequest request{.result = result};
    for (std::size_t i = 0; i < result.tokens.size(); ++i) {
        request.times.token_ms.push_back(wall_ms * static_cast<double>(i + 1) /
                                         static_cast<double>(result.tokens.size()));
    }
    return request;
}

// Two prompts, two turns: plain decoding and lookup.
class ParallelRows : public ::testing::Test {
  protected:
    ParallelRows() {
        prompts_ = {{.data = "d", .id = "a", .tokens = {1, 2}},
                    {.data = "d", .id = "b", .tokens = {1, 2, 3}, .where = "d:2"}};
        references_ = {answer({1, 2, 3}), answer({4, 5, 6, 7})};
        race_.sides = sides_with({}, {.contenders = {parse_contender("lookup/4")}});
        race_.plain_before = turns(/*decode_ms=*/100, /*wall_ms=*/200);
        race_.sides_turns = {turns(140, 400), turns(60, 100)};
    }

    ServedTurns turns(double decode_ms, double wall_ms) const {
        std::vector<ServedRequest> turn;
        for (Result result : references_) {
            result.timings.decode_ms = decode_ms;
            result.timings.prefill_ms = decode_ms / 2;
            turn.push_back(served(result, wall_ms));
        }
        return {turn, turn};
    }

    ParallelOutcome outcome(const SamplingOptions& sampling = {}) const {
        return outcome_of(prompts_, references_, std::span(&race_, 1), sampling);
    }

    std::vector<BenchPrompt> prompts_;
    std::vector<Result> references_;
    ParallelTurns race_;
};

TEST_F(ParallelRows, EveryPromptHasARowForEverySide) {
    race_.peer = {{{.token_ms = {30, 50, 90}}, {.start_ms = 10, .token_ms = {20, 30, 40, 60}}},
                  {{.token_ms = {50, 60, 70}}, {.start_ms = 10, .token_ms = {20, 30, 40, 60}}}};
    race_.peer_setting = "flash=on unified=off";
    std::vector<std::string> names;
    const auto found = outcome();
    for (const BenchRow& row : found.rows) {
        names.push_back(row.id + " " + row.strategy);
    }
    EXPECT_THAT(names, ElementsAre("a autoregressive", "a lookup/4", "a llama", "b autoregressive",
                                   "b lookup/4", "b llama"));
    const BenchRow& peer = found.rows[2];
    EXPECT_EQ(peer.options, "flash=on unified=off");
    EXPECT_EQ(peer.prefill_ms, 40) << "the median time to the first token";
    EXPECT_EQ(peer.turns[0].decode_ms, 60);
    EXPECT_EQ(peer.turns[0].plain_ms, 120);
    EXPECT_EQ(found.loads[2].strategy, "llama");
    EXPECT_EQ(found.loads[2].turns[0].wall_ms, 90);
    EXPECT_FALSE(found.loads[2].n_identical);
}

TEST_F(ParallelRows, SpeedupsUseTheMeanOfBothPlainRuns) {
    const auto rows = outcome().rows;
    EXPECT_EQ(rows[0].turns[0].plain_ms, 100) << "plain decoding is compared with its first run";
    EXPECT_EQ(rows[0].turns[0].decode_ms, 140);
    EXPECT_EQ(rows[1].turns[0].plain_ms, 120);
    EXPECT_NEAR(rows[1].speedup.mean, 2, 1e-9);
    EXPECT_NEAR(rows[1].request_speedup.mean, (70 + 120) / (30.0 + 60), 1e-9);
    EXPECT_FALSE(rows[1].bandwidth_gb_per_second) << "sessions share what a pass reads";
}

TEST_F(ParallelRows, ThroughputIsThatOfAllPrompts) {
    const auto loads = outcome().loads;
    ASSERT_EQ(loads.size(), 2u);
    EXPECT_EQ(loads[0].n_prompts, 2);
    EXPECT_EQ(loads[0].turns[0].n_tokens, 7);
    EXPECT_NEAR(loads[0].throughput.mean, 0.5, 1e-9);
    EXPECT_NEAR(loads[1].throughput.mean, 3, 1e-9) << "300 ms, the mean of both, over 100 ms";
    EXPECT_EQ(loads[1].turns.size(), 2u);
    EXPECT_EQ(loads[1].options, "draft_max=4");
    EXPECT_EQ(loads[1].acceptance, "greedy");
    EXPECT_EQ(loads[1].n_identical, 2);
}

TEST_F(ParallelRows, AnotherTextIsAnError) {
    race_.sides_turns[1][1][1].result.tokens[2] = 9;
    EXPECT_THAT([&] { outcome(); },
                ThrowsMessage<Error>(HasSubstr("d:2: lookup/4, served with others: expected the "
                                               "text of plain decoding")));
}

TEST_F(ParallelRows, PlainDecodingIsComparedToo) {
    race_.plain_before[0][0].result.tokens[2] = 9;
    EXPECT_THROW(outcome(), Error) << "at the start of a turn";
    race_.plain_before[0][0].result.tokens[2] = 3;
    race_.sides_turns[0][0][0].result.tokens[2] = 9;
    EXPECT_THROW(outcome(), Error) << "at its end";
}

TEST_F(ParallelRows, ANearTieIsReported) {
    Result& other = race_.sides_turns[1][1][1].result;
    other.tokens[2] = 9;
    other.speculation.near_ties = {{.position = 12, .gap = 0.25f}};
    const auto found = outcome();
    EXPECT_EQ(found.rows[3].first_difference, (BenchDifference{.position = 12, .gap = 0.25}));
    EXPECT_FALSE(found.rows[1].first_difference);
    EXPECT_EQ(found.loads[1].n_identical, 1);
}

// With the rule `ratio` texts differ, and may be too short.
TEST_F(ParallelRows, ShortAnswersOfARatioAreSkipped) {
    race_.rule = {"ratio", AcceptanceRule::ratio};
    race_.sides[1].speculation.acceptance = AcceptanceRule::ratio;
    race_.sides_turns[1][0][1] = served(answer({9}), 50);
    const auto found = outcome({.temperature = 0.7f});
    ASSERT_EQ(found.skipped.size(), 1u);
    EXPECT_EQ(found.skipped[0].where, "d:2");
    EXPECT_THAT(found.skipped[0].why, HasSubstr("lookup/4 with ratio: expected an answer of two"));
    EXPECT_EQ(found.rows.size(), 2u);
    EXPECT_FALSE(found.loads[1].n_identical);
    EXPECT_EQ(found.loads[0].n_identical, 2);
}

}  // namespace
}  // namespace knap::parallel_rows_test
