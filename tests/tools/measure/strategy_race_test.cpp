#include "tools/measure/strategy_race.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/engine_impl.h"
#include "support/bench_example.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"
#include "support/trained_model.h"
#include "tools/measure/report/bench_speedup.h"
#include "tools/peer/peer_names.h"

namespace knap::strategy_race_test {
namespace {

using test::trained_model;
using testing::ElementsAre;

Engine tiny_engine() {
    return Engine({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 128, .n_threads = 1});
}

BenchPrompt prompt(const Engine& engine) {
    return test::synthetic_prompt(engine, "flint and chert and flint and chert");
}

RaceOptions two_turns() {
    return {.contenders = {parse_contender("lookup"), parse_contender("static/3/exit=2")},
            .n_predict = 12,
            .n_turns = 2};
}

std::vector<std::string> names(const PromptOutcome& outcome) {
    std::vector<std::string> found;
    for (const BenchRow& row : outcome.rows) {
        found.push_back(row.strategy + " " + row.acceptance);
    }
    return found;
}

TEST(StrategyRace, HasARowForEveryContenderAndRule) {
    Engine engine = tiny_engine();
    RaceOptions options = two_turns();
    options.sampling.temperature = 0.8f;
    options.rules = {{"shared-noise", AcceptanceRule::shared_noise},
                     {"ratio", AcceptanceRule::ratio}};
    options.contenders.pop_back();
    options.peers = {"llama"};
    StrategyRace race(engine, options, {});
    const auto outcome = race.measure(prompt(engine));
    ASSERT_TRUE(outcome);
    EXPECT_THAT(names(*outcome), ElementsAre("autoregressive shared-noise", "lookup shared-noise",
                                             "llama shared-noise", "autoregressive ratio",
                                             "lookup ratio", "llama ratio"));
    for (const BenchRow& row : outcome->rows) {
        ASSERT_EQ(row.turns.size(), 2u);
        EXPECT_EQ(row.turns[0].n_generated, 12);
        EXPECT_GT(row.prefill_ms, 0);
        EXPECT_GT(row.tokens_per_second, 0);
    }
}

TEST(StrategyRace, SpeedupsUseTheMeanOfBothPlainRuns) {
    Engine engine = tiny_engine();
    StrategyRace race(engine, two_turns(), {});
    const auto outcome = race.measure(prompt(engine));
    ASSERT_TRUE(outcome);
    const BenchTurn& control = outcome->rows[0].turns[0];
    for (std::size_t i = 1; i < 3; ++i) {
        EXPECT_DOUBLE_EQ(outcome->rows[i].turns[0].plain_ms,
                         (control.plain_ms + control.decode_ms) / 2);
    }
    EXPECT_GT(outcome->rows[2].n_drafted, 0);
    EXPECT_EQ(outcome->rows[2].levels.size(), 1u);
}

TEST(StrategyRace, RequestSpeedupsIncludeThePrefillOfEachEngine) {
    Engine engine = tiny_engine();
    RaceOptions options = two_turns();
    options.peers = {"llama"};
    StrategyRace race(engine, options, {});
    const auto outcome = race.measure(prompt(engine));
    ASSERT_TRUE(outcome);
    const double plain_prefill_ms = outcome->rows.front().prefill_ms;
    EXPECT_NE(outcome->rows.back().prefill_ms, plain_prefill_ms);
    for (const BenchRow& row : outcome->rows) {
        EXPECT_EQ(row.request_speedup,
                  request_speedup_of(row.turns, row.prefill_ms, plain_prefill_ms));
    }
}

// A model of English over bytes: what it writes greedily comes round again, so drafts of it exist.
Engine english_engine() {
    return Engine({.model_path = trained_model(), .n_ctx = 512, .n_threads = 1});
}

const std::string kSentence = "The cat sat on the mat. ";

BenchPrompt repeated_prompt(const Engine& engine) {
    return test::synthetic_prompt(
        engine, kSentence + kSentence + kSentence + kSentence + kSentence + kSentence);
}

RaceOptions race_of_peers() {
    RaceOptions options = two_turns();
    options.contenders.clear();
    options.peers = {kPeerNames.begin(), kPeerNames.end()};
    options.n_predict = 160;
    return options;
}

TEST(StrategyRace, EveryPeerHasARowAndATextLikeOurs) {
    Engine engine = english_engine();
    const auto outcome = StrategyRace(engine, race_of_peers(), {}).measure(repeated_prompt(engine));
    ASSERT_TRUE(outcome);
    EXPECT_THAT(names(*outcome),
                ElementsAre("autoregressive greedy", "llama greedy", "ngram-simple greedy",
                            "ngram-map-k greedy", "ngram-map-k4v greedy", "ngram-mod greedy",
                            "ngram-cache greedy"));
    EXPECT_FALSE(outcome->rows[0].identical_to_knap);
    for (const BenchRow& row : std::span(outcome->rows).subspan(1)) {
        EXPECT_THAT(row.options, testing::AnyOf("flash=off", "flash=on"));
        EXPECT_EQ(row.turns.size(), 2u);
        EXPECT_EQ(row.turns[0].n_generated, 160);
        EXPECT_EQ(row.rounds + row.n_accepted, 159) << row.strategy;
        EXPECT_NEAR(row.rounds * row.mean_accepted_length, 159, 1e-9) << row.strategy;
        EXPECT_EQ(row.n_accepted > 0, row.strategy != "llama") << row.strategy;
        EXPECT_EQ(row.identical_to_libllama.has_value(), row.strategy != "llama");
        ASSERT_TRUE(row.identical_to_knap);
        EXPECT_EQ(*row.identical_to_knap, !row.first_difference);
        if (row.first_difference) {
            EXPECT_LT(*row.first_difference->gap, kNearTieGap) << row.strategy;
        }
        const bool both_are_knaps = *row.identical_to_knap && *outcome->rows[1].identical_to_knap;
        EXPECT_TRUE(!both_are_knaps || row.identical_to_libllama.value_or(true)) << row.strategy;
    }
}

TEST(StrategyRace, SampledPeersAreFedOurTokens) {
    Engine engine = english_engine();
    RaceOptions options = race_of_peers();
    options.sampling.temperature = 0.8f;
    const auto outcome = StrategyRace(engine, options, {}).measure(repeated_prompt(engine));
    ASSERT_TRUE(outcome);
    ASSERT_EQ(outcome->rows.size(), 7u);
    for (const BenchRow& row : outcome->rows) {
        EXPECT_FALSE(row.identical_to_libllama);
        EXPECT_FALSE(row.identical_to_knap);
        EXPECT_EQ(row.distinct_trigrams, outcome->rows[0].distinct_trigrams);
    }
}

// `ngram-mod` remembers the text of the prompt before.
TEST(StrategyRace, PeersKeepWhatTheyLearnUnlessStrategiesAreFresh) {
    Engine engine = english_engine();
    const auto n_accepted = [&](bool is_fresh) {
        RaceOptions options = race_of_peers();
        options.peers = {"ngram-mod"};
        options.n_predict = 80;
        options.fresh_strategies = is_fresh;
        StrategyRace race(engine, options, {});
        EXPECT_TRUE(race.measure(repeated_prompt(engine)));
        return race.measure(test::synthetic_prompt(engine, kSentence + "The cat sat"))
            ->rows[1]
            .n_accepted;
    };
    EXPECT_GT(n_accepted(false), n_accepted(true));
}

TEST(StrategyRace, PeersCanBeCancelledWithinAnAnswer) {
    Engine engine = english_engine();
    int n_answers = 0;
    int n_asked = 0;
    RaceOptions options = race_of_peers();
    options.peers = {"llama"};
    StrategyRace race(engine, options,
                      {.on_progress = [&](double) { ++n_answers; },
                       .is_cancelled = [&] { return n_answers == 1 && ++n_asked > 5; }});
    EXPECT_FALSE(race.measure(repeated_prompt(engine)));
    EXPECT_EQ(n_answers, 1) << "the peer was next";
}

TEST(StrategyRace, AdapterRowsCountAsPrefill) {
    Engine engine({.model_path = tiny_model("tiny-llama", "Q8_0"),
                   .adapter_path = test::write_tiny(test::tiny_adapter(), "race-adapter.gguf"),
                   .n_ctx = 128,
                   .n_threads = 1});
    RaceOptions options = two_turns();
    options.contenders = {parse_contender("kangaroo"), parse_contender("kangaroo/2")};
    StrategyRace race(engine, options, {});
    BenchPrompt long_prompt = prompt(engine);
    while (long_prompt.tokens.size() < 100) {
        long_prompt.tokens.push_back(long_prompt.tokens[long_prompt.tokens.size() - 7]);
    }
    for (int i = 0; i < 2; ++i) {
        const auto outcome = race.measure(long_prompt);
        ASSERT_TRUE(outcome);
        const double adapter_ms = outcome->rows[1].prefill_ms - outcome->rows[0].prefill_ms;
        EXPECT_GT(adapter_ms, outcome->rows[1].turns[0].search_ms)
            << "the first turn does not compute them again";
        EXPECT_EQ(outcome->rows[2].prefill_ms, outcome->rows[1].prefill_ms);
        EXPECT_GT(outcome->rows[1].n_drafted, 0);
    }
}

TEST(StrategyRace, ComputesEveryPromptInFull) {
    Engine engine = tiny_engine();
    StrategyRace race(engine, two_turns(), {});
    ASSERT_TRUE(race.measure(prompt(engine)));
    const std::vector<Token> history = race.session().history;
    ASSERT_TRUE(race.measure(prompt(engine)));
    EXPECT_EQ(race.session().history, history) << "the same text, from the same rows";
    EXPECT_EQ(race.session().n_prompt, prompt(engine).tokens.size());
}

// Its first round drafts eight tokens. Then its threshold becomes 1, and drafts end after one
// token.
constexpr const char* kOneLongDraft =
    "draft-verify(exit-confidence=0;target=1;eps=1;beta2=0)/8/exit=1";

bool has_long_drafts(const BenchRow& row) {
    return row.n_drafted > row.rounds;
}

RaceOptions learning_race() {
    RaceOptions options = two_turns();
    options.contenders = {parse_contender("lookup"), parse_contender(kOneLongDraft)};
    return options;
}

BenchPrompt other_prompt(const Engine& engine) {
    BenchPrompt other = prompt(engine);
    other.tokens = engine.tokenize("one two three and four and five and six");
    return other;
}

TEST(StrategyRace, StrategiesKeepWhatTheyLearnFromPromptToPrompt) {
    Engine engine = tiny_engine();
    StrategyRace race(engine, learning_race(), {});
    const auto first = race.measure(prompt(engine));
    ASSERT_TRUE(first);
    ASSERT_EQ(first->rows[2].strategy, kOneLongDraft);
    EXPECT_TRUE(has_long_drafts(first->rows[2]))
        << "the last turn has learned from neither the warm-up nor the first turn";
    const auto second = race.measure(other_prompt(engine));
    ASSERT_TRUE(second);
    EXPECT_FALSE(has_long_drafts(second->rows[2]));
}

TEST(StrategyRace, FreshStrategiesStartOverWithEveryPrompt) {
    Engine engine = tiny_engine();
    RaceOptions options = learning_race();
    options.fresh_strategies = true;
    StrategyRace race(engine, options, {});
    for (const BenchPrompt& one : {prompt(engine), other_prompt(engine)}) {
        const auto outcome = race.measure(one);
        ASSERT_TRUE(outcome);
        EXPECT_TRUE(has_long_drafts(outcome->rows[2]));
    }
}

TEST(StrategyRace, RulesLearnSeparately) {
    Engine engine = tiny_engine();
    RaceOptions options = learning_race();
    options.sampling.temperature = 0.8f;
    options.rules = {{"shared-noise", AcceptanceRule::shared_noise},
                     {"equality", AcceptanceRule::equality}};
    StrategyRace race(engine, options, {});
    const auto outcome = race.measure(prompt(engine));
    ASSERT_TRUE(outcome);
    ASSERT_EQ(outcome->rows[5].strategy, kOneLongDraft);
    EXPECT_TRUE(has_long_drafts(outcome->rows[5]));
}

TEST(StrategyRace, ProgressEndsAtOne) {
    Engine engine = tiny_engine();
    std::vector<double> fractions;
    RaceOptions options = two_turns();
    options.peers = {"llama"};
    StrategyRace race(engine, options,
                      {.on_progress = [&](double fraction) { fractions.push_back(fraction); }});
    ASSERT_TRUE(race.measure(prompt(engine)));
    EXPECT_EQ(fractions.size(), 10u);
    EXPECT_TRUE(std::ranges::is_sorted(fractions));
    EXPECT_DOUBLE_EQ(fractions.back(), 1);
}

TEST(StrategyRace, CanBeCancelled) {
    Engine engine = tiny_engine();
    bool is_cancelled = false;
    StrategyRace race(engine, two_turns(),
                      {.on_progress = [&](double) { is_cancelled = true; },
                       .is_cancelled = [&] { return is_cancelled; }});
    EXPECT_FALSE(race.measure(prompt(engine)));
}

TEST(StrategyRace, SkipsPromptsWithAnswersOfOneToken) {
    Engine engine = tiny_engine();
    RaceOptions options = two_turns();
    options.n_predict = 1;
    StrategyRace race(engine, options, {});
    const auto outcome = race.measure(prompt(engine));
    ASSERT_TRUE(outcome);
    EXPECT_TRUE(outcome->rows.empty());
    EXPECT_EQ(outcome->skipped_because, "expected an answer of two tokens or more, found one of 1");
}

// With the rule `ratio` texts differ from plain decoding's and may end earlier.
TEST(StrategyRace, SkipsPromptsWhenAStrategyAnswersWithOneToken) {
    const std::string kWhy =
        "static/3/exit=2 with ratio: expected an answer of two tokens or more, found one of 1";
    Engine engine = tiny_engine();
    BenchPrompt ends = prompt(engine);
    ends.depth.reset();
    RaceOptions options = two_turns();
    options.rules = {{"shared-noise", AcceptanceRule::shared_noise},
                     {"ratio", AcceptanceRule::ratio}};
    options.contenders = {parse_contender("static/3/exit=2")};
    options.sampling.temperature = 1;
    for (const Token token : impl_of(engine).tokenizer->end_of_generation()) {
        options.sampling.logit_bias.emplace_back(token, 3.0f);
    }
    int n_skipped = 0;
    for (std::uint64_t seed = 0; seed < 32; ++seed) {
        options.sampling.seed = seed;
        const auto outcome = StrategyRace(engine, options, {}).measure(ends);
        ASSERT_TRUE(outcome);
        EXPECT_EQ(outcome->rows.empty(), !outcome->skipped_because.empty());
        for (const BenchRow& row : outcome->rows) {
            EXPECT_GT(row.speedup.mean, 0) << row.strategy << " " << row.acceptance;
        }
        n_skipped += outcome->skipped_because == kWhy ? 1 : 0;
    }
    EXPECT_GT(n_skipped, 0);
}

}  // namespace
}  // namespace knap::strategy_race_test
