#include "tools/measure/parallel_race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::parallel_race_test {
namespace {

using testing::ElementsAre;

Engine tiny_engine(int n_parallel) {
    return Engine({.model_path = tiny_model("tiny-llama", "Q8_0"),
                   .n_ctx = 256,
                   .n_parallel = n_parallel,
                   .n_threads = 1});
}

// Synthetic, so their answers never end early.
std::vector<BenchPrompt> prompts(int n) {
    std::vector<BenchPrompt> list;
    for (int i = 0; i < n; ++i) {
        list.push_back({.data = kSynthetic,
                        .id = std::to_string(i),
                        .depth = 20 + i,
                        .tokens = random_tokens(20 + i, 256, static_cast<unsigned>(i))});
    }
    return list;
}

RaceOptions two_turns() {
    return {.contenders = {parse_contender("lookup"), parse_contender("static/3/exit=2")},
            .n_predict = 12,
            .n_turns = 2};
}

std::vector<std::string> names(const ParallelOutcome& outcome) {
    std::vector<std::string> found;
    for (const BenchLoad& load : outcome.loads) {
        found.push_back(load.strategy);
    }
    return found;
}

void expect_whole(const ParallelOutcome& outcome, std::size_t n_prompts) {
    EXPECT_THAT(names(outcome),
                ElementsAre("autoregressive", "lookup", "static/3/exit=2", "llama"));
    EXPECT_EQ(outcome.rows.size(), 4 * n_prompts);
    for (const BenchLoad& load : outcome.loads) {
        EXPECT_EQ(load.turns.size(), 2u);
        EXPECT_EQ(load.turns[0].n_tokens, 12 * static_cast<int>(n_prompts));
        EXPECT_EQ(load.n_identical.has_value(), load.strategy != "llama");
        EXPECT_EQ(load.n_identical.value_or(load.n_prompts), static_cast<int>(n_prompts));
        EXPECT_GT(load.throughput.mean, 0);
    }
    for (const BenchRow& row : outcome.rows) {
        EXPECT_EQ(row.turns.size(), 2u);
        EXPECT_FALSE(row.first_difference);
    }
}

TEST(ParallelRace, OneSessionServesAllPrompts) {
    Engine engine = tiny_engine(1);
    RaceOptions options = two_turns();
    options.peers = {"llama"};
    std::vector<double> progress;
    ParallelRace race(engine, options,
                      {.on_progress = [&](double n_done) { progress.push_back(n_done); }});
    const auto outcome = race.measure(prompts(3));
    ASSERT_TRUE(outcome);
    expect_whole(*outcome, 3);
    EXPECT_TRUE(std::ranges::is_sorted(progress));
    EXPECT_EQ(progress.back(), n_loads(options));
    EXPECT_EQ(n_loads(options), 1 + 2 * 5u);
}

TEST(ParallelRace, SeveralSessionsWriteTheTextsOfOne) {
    Engine engine = tiny_engine(3);
    RaceOptions options = two_turns();
    options.peers = {"llama"};
    const auto outcome = ParallelRace(engine, options, {}).measure(prompts(7));
    ASSERT_TRUE(outcome);
    expect_whole(*outcome, 7);
}

TEST(ParallelRace, ShortAnswersAreSkipped) {
    Engine engine = tiny_engine(1);
    RaceOptions options = two_turns();
    options.n_predict = 1;
    const auto outcome = ParallelRace(engine, options, {}).measure(prompts(2));
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(outcome->rows.empty());
    EXPECT_TRUE(outcome->loads.empty());
    EXPECT_EQ(outcome->skipped.size(), 2u);
}

TEST(ParallelRace, CanBeCancelled) {
    Engine engine = tiny_engine(1);
    bool is_cancelled = false;
    ParallelRace race(engine, two_turns(),
                      {.on_progress = [&](double n_done) { is_cancelled = n_done > 2; },
                       .is_cancelled = [&] { return is_cancelled; }});
    EXPECT_FALSE(race.measure(prompts(2)));
}

}  // namespace
}  // namespace knap::test::parallel_race_test
