#include "tools/measure/bench_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::bench_row_test {
namespace {

using testing::ElementsAre;

TEST(BenchTurn, ScalesPlainTimeToTheSteps) {
    Result result;
    result.n_generated = 5;
    result.timings = {
        .decode_ms = 30, .draft_ms = 1, .verify_ms = 2, .search_ms = 3, .other_ms = 24};
    // Four of the eight steps that took 80 ms.
    EXPECT_EQ(make_turn(result, 80, 9), (BenchTurn{30, 40, 5, 1, 2, 3, 24}));
    result.n_generated = 9;
    EXPECT_DOUBLE_EQ(make_turn(result, 80, 9).plain_ms, 80);
}

TEST(BenchTurn, TokensPerSecondCountTheStepsOfAllTurns) {
    const std::vector<BenchTurn> turns{{.decode_ms = 10, .plain_ms = 20, .n_generated = 3},
                                       {.decode_ms = 10, .plain_ms = 80, .n_generated = 3}};
    EXPECT_DOUBLE_EQ(tokens_per_second_of(turns), 1000.0 * 4 / 20);
}

// An answer of ten tokens after a prompt of five.
Result answer() {
    Result result;
    result.n_prompt = 5;
    result.n_generated = 10;
    result.tokens = {1, 2, 3, 1, 2, 3, 1};
    result.timings.bandwidth_gb_per_second = 3;
    result.speculation = {.rounds = 4,
                          .n_drafted = 8,
                          .n_accepted = 6,
                          .acceptance_rate = 0.75,
                          .mean_accepted_length = 2.25,
                          .acceptance_by_position = {0.75},
                          .near_ties = {{7, 0.1f}}};
    return result;
}

BenchRow row_of(const Result& result, const std::string& contender = "knapspec") {
    BenchRow row =
        blank_row({.data = "d", .id = "i", .tokens = {1, 2}, .n_document_tokens = 4}, "greedy", 7);
    fill_row(row, parse_contender(contender), std::span(&result, 1),
             {{.decode_ms = 10, .plain_ms = 15, .n_generated = 10}});
    return row;
}

TEST(BenchRow, OfAPeerHasTheCountsOfItsLastAnswer) {
    const LlamaAnswer first{
        .tokens = {1, 2, 3, 4, 5}, .n_rounds = 4, .decode_ms = 30, .draft_ms = 1, .verify_ms = 25};
    LlamaAnswer last = first;
    last.n_rounds = 2;
    last.drafted = {2, 1};
    last.accepted = {2, 0};
    BenchRow row = blank_row({.tokens = {1, 2}}, "greedy", 7);
    fill_peer_row(row, "ngram-mod", "flash=on", answer(), std::vector{first, last},
                  std::vector{60.0, 50.0});
    EXPECT_EQ(row.strategy, "ngram-mod");
    EXPECT_EQ(row.options, "flash=on");
    EXPECT_EQ(row.turns,
              (std::vector<BenchTurn>{{30, 60, 5, 1, 25, 0, 4}, {30, 50, 5, 1, 25, 0, 4}}));
    EXPECT_EQ(row.rounds, 2);
    EXPECT_EQ(row.mean_accepted_length, 2);
    EXPECT_EQ(row.n_drafted, 3);
    EXPECT_EQ(row.n_accepted, 2);
    EXPECT_DOUBLE_EQ(*row.acceptance_rate, 2.0 / 3);
    EXPECT_THAT(row.acceptance_by_position, ElementsAre(1, 0));
    EXPECT_DOUBLE_EQ(row.tokens_per_second, 1000.0 * 8 / 60);
    EXPECT_FALSE(row.bandwidth_gb_per_second);
}

TEST(BenchRow, HasTheCountsOfTheLastAnswer) {
    const BenchRow row = row_of(answer());
    EXPECT_TRUE(row.is_cut);
    EXPECT_EQ(row.n_prompt, 2);
    EXPECT_EQ(row.prefill_ms, 7);
    EXPECT_EQ(row.rounds, 4);
    EXPECT_EQ(row.acceptance_rate, 0.75);
    EXPECT_EQ(row.near_ties, 1);
    EXPECT_EQ(row.bandwidth_gb_per_second, 3);
    EXPECT_DOUBLE_EQ(row.distinct_trigrams, 0.6);
    EXPECT_DOUBLE_EQ(row.speedup.mean, 1.5);
    EXPECT_FALSE(row.predicted);
}

TEST(BenchRow, HasNoAcceptanceRateWithoutDrafts) {
    Result result = answer();
    result.speculation = {.rounds = 9};
    EXPECT_FALSE(row_of(result).acceptance_rate);
}

TEST(BenchRow, LevelsLastUntilTheNextDecision) {
    Result result = answer();
    result.decisions = {{.token = 1, .plan = "a=w16+64"},
                        {.token = 4},  // drafts with no plan
                        {.token = 6, .plan = "exit=3"}};
    EXPECT_THAT(row_of(result).levels,
                ElementsAre(BenchLevel{"a=w16+64", 6, 3}, BenchLevel{"exit=3", 11, 4}));
    EXPECT_THAT(row_of(answer(), "static/4/a=w16+64").levels,
                ElementsAre(BenchLevel{"a=w16+64", 5, 10}));
}

TEST(BenchRow, PredictionIsOfTheLastMeasuredDecision) {
    Result result = answer();
    result.decisions = {{.predicted = 1.5, .measured = 1.25}, {.predicted = 2, .measured = 0}};
    EXPECT_EQ(row_of(result).predicted, 1.5);
    EXPECT_EQ(row_of(result).measured, 1.25);
}

}  // namespace
}  // namespace knap::bench_row_test
