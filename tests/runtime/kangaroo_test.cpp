// Kangaroo through the public face: the text is plain decoding's, whatever the adapter's rows have
// to catch up with.
#include <atomic>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"

namespace knap::test::runtime_kangaroo_test {
namespace {

using ::testing::HasSubstr;

// An exit that random weights never take, so that drafts are long.
const SpeculationOptions kLong{.strategy = "kangaroo", .settings = {{"exit-confidence", "1e-6"}}};
const SpeculationOptions kUsual{.strategy = "kangaroo"};

class KangarooSession : public ::testing::Test {
  protected:
    explicit KangarooSession(RuntimeConfig config = {.n_ctx = 512, .n_threads = 1})
        : engine_(with_files(std::move(config))), session_(engine_) {}

    static RuntimeConfig with_files(RuntimeConfig config) {
        config.model_path = tiny_model("tiny-llama", "Q8_0");
        config.adapter_path =
            write_tiny(tiny_adapter({.exit_layer = 3, .gain = 0.3f}), "session-adapter.gguf");
        return config;
    }

    static std::vector<Token> prompt(int n, unsigned seed = 1) {
        return random_tokens(n, 256, seed);
    }

    Result generate(std::span<const Token> tokens,
                    const SpeculationOptions& speculation,
                    const SamplingOptions& sampling = {},
                    int n_predict = 60,
                    const Observer& observer = {}) {
        return session_.generate(tokens,
                                 {.n_predict = n_predict,
                                  .sampling = sampling,
                                  .speculation = speculation,
                                  .ignore_eos = true},
                                 observer);
    }

    // What a new session writes without drafts.
    std::vector<Token> plain(std::span<const Token> tokens,
                             const SamplingOptions& sampling = {},
                             int n_predict = 60) {
        Session fresh(engine_);
        return plain_text(fresh, tokens,
                          {.n_predict = n_predict, .sampling = sampling, .ignore_eos = true})
            .tokens;
    }

    Engine engine_;
    Session session_;
};

TEST_F(KangarooSession, WritesWhatPlainDecodingWrites) {
    const SamplingOptions sampled{.temperature = 0.9f, .seed = 3};
    int n_accepted = 0;
    int n_drafted = 0;
    for (const SamplingOptions& sampling : {SamplingOptions(), sampled}) {
        for (const SpeculationOptions& speculation : {kLong, kUsual}) {
            for (const int n_prompt : {1, 30, 300}) {
                const Result result = generate(prompt(n_prompt), speculation, sampling);
                EXPECT_EQ(result.tokens, plain(prompt(n_prompt), sampling));
                EXPECT_TRUE(result.speculation.row_invariant);
                n_accepted += result.speculation.n_accepted;
                n_drafted += result.speculation.n_drafted;
            }
        }
    }
    EXPECT_GT(n_accepted, n_drafted / 40) << "a test in which nothing is accepted shows little";
    EXPECT_LT(n_accepted, n_drafted);
}

TEST_F(KangarooSession, RatioRuleIsReproducible) {
    SpeculationOptions ratio = kLong;
    ratio.acceptance = AcceptanceRule::ratio;
    const SamplingOptions sampling{.temperature = 1.0f, .seed = 5};
    const Result first = generate(prompt(40), ratio, sampling);
    session_.reset();
    EXPECT_EQ(generate(prompt(40), ratio, sampling).tokens, first.tokens);
    EXPECT_NE(plain(prompt(40), sampling), first.tokens);
    EXPECT_GT(first.speculation.n_accepted, 0);
}

TEST_F(KangarooSession, RequestsMayFollowOneAnotherInAnyOrder) {
    std::vector<Token> conversation = prompt(40);
    for (const SpeculationOptions& speculation :
         {kLong, plain_decoding(), kLong, SpeculationOptions{.strategy = "lookup"}, kUsual,
          kLong}) {
        const Result result = generate(conversation, speculation, {}, 20);
        ASSERT_EQ(result.tokens, plain(conversation, {}, 20));
        conversation.insert(conversation.end(), result.tokens.begin(), result.tokens.end());
        conversation.push_back(17);
    }
    // Another text with the same beginning, and one that has nothing in common.
    conversation.resize(60);
    conversation.push_back(3);
    EXPECT_EQ(generate(conversation, kLong).tokens, plain(conversation));
    EXPECT_EQ(generate(prompt(25, 9), kLong).tokens, plain(prompt(25, 9)));
}

TEST_F(KangarooSession, DraftsAreTheSameWhetherOrNotAPromptWasReused) {
    // What is drafted shows in what is accepted: rows of a stale text would draft something else.
    const Result fresh = generate(prompt(200), kLong, {}, 80);
    std::vector<Token> other = prompt(200);
    std::ranges::copy(prompt(60, 4), other.begin() + 120);
    generate(other, kLong, {}, 80);
    const Result again = generate(prompt(200), kLong, {}, 80);
    EXPECT_GT(again.n_prompt_reused, 100);
    EXPECT_EQ(again.tokens, fresh.tokens);
    EXPECT_NEAR(again.speculation.n_accepted, fresh.speculation.n_accepted, 3) << "but for ties";
}

TEST_F(KangarooSession, StartsFromASavedPrompt) {
    const auto path = temporary_folder() / "kangaroo-prompt.cache";
    generate(prompt(100), kLong, {}, 5);
    session_.save_prompt_cache(path);
    Session other(engine_);
    other.load_prompt_cache(path);
    const Result result =
        other.generate(prompt(100), {.n_predict = 60, .speculation = kLong, .ignore_eos = true});
    EXPECT_EQ(result.n_prompt_reused, 99);
    EXPECT_EQ(result.tokens, plain(prompt(100)));
}

TEST_F(KangarooSession, FillsTheContextToItsLastToken) {
    for (const int n_prompt : {490, 511, 512}) {
        EXPECT_EQ(generate(prompt(n_prompt), kLong, {}, -1).tokens,
                  plain(prompt(n_prompt), {}, -1));
    }
}

TEST_F(KangarooSession, CancellingLeavesAUsableSession) {
    const std::vector<Token> expected = plain(prompt(300));
    for (const int n_polls_allowed : {10, 100, 200, 400, 800}) {
        std::atomic<int> n_polls{0};
        const Observer observer{.is_cancelled = [&] { return ++n_polls > n_polls_allowed; }};
        session_.reset();
        EXPECT_EQ(generate(prompt(300), kLong, {}, 200, observer).stop, StopReason::cancelled);
        EXPECT_EQ(generate(prompt(300), kLong).tokens, expected) << n_polls_allowed;
    }
}

class SmallPassesKangaroo : public KangarooSession {
  protected:
    SmallPassesKangaroo() : KangarooSession({.n_ctx = 256, .n_threads = 1, .n_ubatch = 2}) {}
};

TEST_F(SmallPassesKangaroo, DraftsKeepToTheRowsOfAPass) {
    const Result result = generate(prompt(30), kLong);
    EXPECT_EQ(result.tokens, plain(prompt(30)));
    EXPECT_GT(result.speculation.n_drafted, 0);
}

TEST_F(KangarooSession, CountsTheMemoryOfTheAdapter) {
    Engine without({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 512, .n_threads = 1});
    Session bare(without);
    const MemoryStatistics with = plain_text(session_, prompt(5), {.n_predict = 1}).memory;
    const MemoryStatistics bare_memory = plain_text(bare, prompt(5), {.n_predict = 1}).memory;
    EXPECT_EQ(with.weights_bytes - bare_memory.weights_bytes, 4 * 64 * 64 / 32 * 34 + 2 * 64 * 4);
    // Keys and values of 64 channels in f16, beside 4 layers of 32.
    EXPECT_EQ(2 * with.cache_bytes, 3 * bare_memory.cache_bytes);
    EXPECT_GT(with.scratch_bytes, bare_memory.scratch_bytes);
}

TEST_F(KangarooSession, AnAdapterIsDescribed) {
    const std::optional<AdapterInfo> adapter = engine_.info().adapter;
    ASSERT_TRUE(adapter.has_value());
    EXPECT_EQ(adapter->path, engine_.config().adapter_path.string());
    EXPECT_EQ(adapter->exit_layer, 3);
    EXPECT_EQ(adapter->n_heads, 4);
    EXPECT_EQ(adapter->n_parameters, 4 * 64 * 64 + 2 * 64);
}

TEST(KangarooEngine, WithoutAnAdapterRefusesTheStrategyAlone) {
    Engine engine({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 64, .n_threads = 1});
    EXPECT_FALSE(engine.info().adapter.has_value());
    Session session(engine);
    const std::vector<Token> prompt = random_tokens(5, 256, 1);
    try {
        session.generate(prompt, {.n_predict = 2, .speculation = kUsual});
        FAIL() << "ran";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("`.adapter_path`"));
    }
    EXPECT_EQ(session.generate(prompt, {.n_predict = 2, .ignore_eos = true}).n_generated, 2);
}

}  // namespace
}  // namespace knap::test::runtime_kangaroo_test
