#include <cstring>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "base/hash.h"
#include "graph/attention/attention_policy.h"
#include "support/baseline.h"
#include "support/gguf_variant.h"
#include "support/loaded_model.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::session_test {
namespace {

using ::testing::HasSubstr;

RuntimeConfig config_of(const std::filesystem::path& path, int n_ctx = 256) {
    return {.model_path = path, .n_ctx = n_ctx, .n_threads = 1};
}

template <typename Action>
std::string error_of(Action action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

class Sessions : public ::testing::Test {
  protected:
    Sessions() : engine_(config_of(tiny_model("tiny-llama", "Q8_0"))), session_(engine_) {}

    std::vector<Token> prompt(int n, unsigned seed = 1) const {
        return random_tokens(n, 256, seed);  // bytes: no end-of-generation token among them
    }
    static GenerateOptions greedy(int n) { return {.n_predict = n, .ignore_eos = true}; }

    Engine engine_;
    Session session_;
};

TEST_F(Sessions, GreedyTextIsReproducible) {
    const auto first = plain_text(session_, prompt(20), greedy(30));
    EXPECT_EQ(first.n_generated, 30);
    EXPECT_EQ(first.stop, StopReason::length);
    EXPECT_EQ(first.n_prompt, 20);
    Session other(engine_);
    EXPECT_EQ(plain_text(other, prompt(20), greedy(30)).tokens, first.tokens);
    EXPECT_EQ(plain_text(session_, prompt(20), greedy(30)).tokens, first.tokens)
        << "on a used session";
}

// Its first round drafts eight tokens; from then on its threshold is 1, and a draft ends with its
// first token.
SpeculationOptions one_long_draft() {
    return {.strategy = "draft-verify",
            .draft_max = 8,
            .settings = {{"plan", "exit=1"},
                         {"exit-confidence", "0"},
                         {"target", "1"},
                         {"eps", "1"},
                         {"beta2", "0"}}};
}

bool has_long_drafts(const Result& result) {
    return result.speculation.n_drafted > result.speculation.rounds;
}

TEST_F(Sessions, WhatAStrategyLearnsLastsWhileOthersAreUsed) {
    GenerateOptions learning = greedy(12);
    learning.speculation = one_long_draft();
    EXPECT_TRUE(has_long_drafts(session_.generate(prompt(20), learning)));
    session_.generate(prompt(20), greedy(4));
    session_.reset();
    EXPECT_FALSE(has_long_drafts(session_.generate(prompt(24, /*seed=*/2), learning)));
    session_.forget_strategies();
    EXPECT_TRUE(has_long_drafts(session_.generate(prompt(20), learning)));
}

TEST_F(Sessions, CommonBeginningIsNotComputedAgain) {
    const auto whole = prompt(60);
    plain_text(session_, std::span(whole).first(40), greedy(5));
    const auto continued = plain_text(session_, whole, greedy(20));
    EXPECT_EQ(continued.n_prompt_reused, 40);
    Session fresh(engine_);
    const auto expected = plain_text(fresh, whole, greedy(20));
    EXPECT_EQ(expected.n_prompt_reused, 0);
    EXPECT_EQ(continued.tokens, expected.tokens);
}

TEST_F(Sessions, SamePromptAgainComputesOnlyItsLastToken) {
    const auto first = plain_text(session_, prompt(50), greedy(10));
    const auto again = plain_text(session_, prompt(50), greedy(10));
    EXPECT_EQ(again.n_prompt_reused, 49);
    EXPECT_EQ(again.tokens, first.tokens);
}

TEST_F(Sessions, HistoryHoldsPromptAndAnswer) {
    const auto input = prompt(7);
    const auto result = plain_text(session_, input, greedy(9));
    std::vector<Token> expected = input;
    expected.insert(expected.end(), result.tokens.begin(), result.tokens.end());
    EXPECT_EQ(std::vector<Token>(session_.history().begin(), session_.history().end()), expected);
    session_.reset();
    EXPECT_TRUE(session_.history().empty());
}

TEST_F(Sessions, PassSizesDoNotChangeTheText) {
    const auto expected = plain_text(session_, prompt(100), greedy(40)).tokens;
    for (const int n_ubatch : {1, 7, 64, 100}) {
        RuntimeConfig config = config_of(tiny_model("tiny-llama", "Q8_0"));
        config.n_ubatch = n_ubatch;
        Engine engine(config);
        Session session(engine);
        EXPECT_EQ(plain_text(session, prompt(100), greedy(40)).tokens, expected)
            << "`.n_ubatch` " << n_ubatch;
    }
}

TEST_F(Sessions, SeedDecidesTheSampledText) {
    GenerateOptions options = greedy(30);
    options.sampling.temperature = 1.0f;
    options.sampling.seed = 42;
    const auto first = plain_text(session_, prompt(20), options).tokens;
    EXPECT_EQ(plain_text(session_, prompt(20), options).tokens, first);
    options.sampling.seed = 43;
    EXPECT_NE(plain_text(session_, prompt(20), options).tokens, first);
}

TEST_F(Sessions, SamplingGoesOnFromAnyPrefixOfItsOwnText) {
    GenerateOptions options = greedy(30);
    options.sampling.temperature = 1.0f;
    options.sampling.seed = 7;
    const auto input = prompt(20);
    const auto whole = plain_text(session_, input, options).tokens;
    std::vector<Token> longer = input;
    longer.insert(longer.end(), whole.begin(), whole.begin() + 10);
    Session other(engine_);
    options.n_predict = 20;
    EXPECT_EQ(plain_text(other, longer, options).tokens,
              std::vector<Token>(whole.begin() + 10, whole.end()));
}

TEST_F(Sessions, ContextCanBeFilledExactly) {
    const auto result = plain_text(session_, prompt(250), greedy(-1));
    EXPECT_EQ(result.stop, StopReason::context);
    EXPECT_EQ(result.n_generated, 6);
    EXPECT_EQ(session_.history().size(), 256u);
    const auto full = plain_text(session_, prompt(256), greedy(-1));
    EXPECT_EQ(full.stop, StopReason::context);
    EXPECT_EQ(full.n_generated, 0);
}

TEST_F(Sessions, SmallestContextHoldsOneToken) {
    Engine engine(config_of(tiny_model("tiny-llama", "Q8_0"), 1));
    Session session(engine);
    const auto result = plain_text(session, prompt(1), greedy(5));
    EXPECT_EQ(result.stop, StopReason::context);
    EXPECT_EQ(result.n_generated, 0);
}

TEST_F(Sessions, BadPromptsAreRefusedAndTheSessionLives) {
    EXPECT_THAT(error_of([&] { plain_text(session_, {}, greedy(1)); }),
                HasSubstr("at least one token"));
    EXPECT_THAT(error_of([&] { plain_text(session_, prompt(257), greedy(1)); }),
                HasSubstr("at most 256 tokens (the context, `.n_ctx`), found 257"));
    const std::vector<Token> unknown{1, 2, 1000000};
    EXPECT_THAT(error_of([&] { plain_text(session_, unknown, greedy(1)); }),
                HasSubstr("found 1000000 at position 2"));
    const std::vector<Token> negative{-1};
    EXPECT_THAT(error_of([&] { plain_text(session_, negative, greedy(1)); }),
                HasSubstr("found -1"));
    EXPECT_EQ(plain_text(session_, prompt(1), greedy(3)).n_generated, 3) << "a one-token prompt";
}

TEST_F(Sessions, BadOptionsAreRefusedBeforeTheHistoryChanges) {
    plain_text(session_, prompt(10), greedy(5));
    const std::size_t before = session_.history().size();
    GenerateOptions options = greedy(5);
    options.sampling.top_p = 2.0f;
    EXPECT_THAT(error_of([&] { plain_text(session_, prompt(20), options); }),
                HasSubstr("`.top_p`"));
    options = greedy(5);
    options.stop = {""};
    EXPECT_NE(error_of([&] { plain_text(session_, prompt(20), options); }), "no error");
    EXPECT_EQ(session_.history().size(), before);
}

TEST_F(Sessions, NothingIsGeneratedWhenNothingIsAskedFor) {
    const auto result = plain_text(session_, prompt(10), greedy(0));
    EXPECT_EQ(result.n_generated, 0);
    EXPECT_EQ(result.stop, StopReason::length);
    EXPECT_EQ(result.text, "");
}

TEST_F(Sessions, StopStringEndsTheTextBeforeItAppears) {
    const std::string whole = plain_text(session_, prompt(20), greedy(60)).text;
    ASSERT_GT(whole.size(), 20u);
    std::size_t cut = whole.size() / 2;
    while ((static_cast<unsigned char>(whole[cut]) & 0xc0) == 0x80) {
        ++cut;  // to the beginning of a character
    }
    std::size_t end = cut + 6;
    while (end < whole.size() && (static_cast<unsigned char>(whole[end]) & 0xc0) == 0x80) {
        ++end;
    }
    const std::string stop = whole.substr(cut, end - cut);
    GenerateOptions options = greedy(60);
    options.stop = {stop};
    std::string streamed;
    const auto result = plain_text(session_, prompt(20), options,
                                   {.on_text = [&](std::string_view text) { streamed += text; }});
    EXPECT_EQ(result.stop, StopReason::stop);
    EXPECT_EQ(result.text, whole.substr(0, whole.find(stop)));
    EXPECT_EQ(streamed, result.text);
}

TEST_F(Sessions, EndOfGenerationEndsTheTextUnlessIgnored) {
    const Token eos = engine_.tokenize("<|im_end|>", false, true).front();
    GenerateOptions options{.n_predict = 10};
    options.sampling.logit_bias = {{eos, 1000.0f}};
    const auto ended = plain_text(session_, prompt(5), options);
    EXPECT_EQ(ended.stop, StopReason::eos);
    EXPECT_EQ(ended.n_generated, 0);
    options.ignore_eos = true;
    EXPECT_EQ(plain_text(session_, prompt(5), options).n_generated, 10);
}

TEST_F(Sessions, CancelledRequestKeepsWhatItHas) {
    int n_polls = 0;
    std::string streamed;
    const Observer observer{.on_text = [&](std::string_view text) { streamed += text; },
                            .is_cancelled = [&] { return ++n_polls > 400; }};
    const auto result = plain_text(session_, prompt(20), greedy(-1), observer);
    EXPECT_EQ(result.stop, StopReason::cancelled);
    EXPECT_EQ(result.text, streamed);
    EXPECT_EQ(session_.history().size(), 20u + result.tokens.size());
    Session fresh(engine_);
    EXPECT_EQ(plain_text(session_, prompt(20), greedy(30)).tokens,
              plain_text(fresh, prompt(20), greedy(30)).tokens);
}

TEST_F(Sessions, CancelledPrefillLeavesAUsableSession) {
    int n_polls = 0;
    const auto result = plain_text(session_, prompt(200), greedy(5),
                                   {.is_cancelled = [&] { return ++n_polls > 3; }});
    EXPECT_EQ(result.stop, StopReason::cancelled);
    EXPECT_EQ(result.n_generated, 0);
    Session fresh(engine_);
    EXPECT_EQ(plain_text(session_, prompt(200), greedy(5)).tokens,
              plain_text(fresh, prompt(200), greedy(5)).tokens);
}

TEST_F(Sessions, PrefillProgressReachesTheEnd) {
    std::vector<std::pair<int, int>> steps;
    plain_text(session_, prompt(100), greedy(1), {.on_prefill = [&](int done, int total) {
                   steps.push_back({done, total});
               }});
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.back(), (std::pair{100, 100}));
}

TEST_F(Sessions, StatisticsAddUp) {
    plain_text(session_, prompt(20), greedy(10));
    const auto result = plain_text(session_, prompt(20, 2), greedy(30));
    EXPECT_NEAR(result.timings.host_ms + result.timings.compute_ms, result.timings.decode_ms, 1e-6);
    EXPECT_EQ(result.allocations_after_warmup, 0);
    EXPECT_EQ(result.graphs.built, 0) << "knap's own operators need none";
    EXPECT_GT(result.memory.weights_bytes, 0);
    EXPECT_GT(result.memory.cache_bytes, 0);
    EXPECT_GT(result.memory.scratch_bytes, 0);
    EXPECT_GT(result.memory.peak_rss_bytes, 0);
    RuntimeConfig config = config_of(tiny_model("tiny-llama", "Q8_0"));
    EXPECT_EQ(result.attention_path,
              to_string(choose_attention(read_config(GgufFile::open(config.model_path)), config,
                                         Backend(1))
                            .path));
    EXPECT_EQ(result.strategy, "autoregressive");
    EXPECT_EQ(result.repack, "off");
}

TEST_F(Sessions, TextEndingInHalfACharacterGoesThrough) {
    const auto tokens = engine_.tokenize("gr\xc3\xbc\xc3", false);
    const auto result = plain_text(session_, tokens, greedy(10));
    EXPECT_EQ(result.n_generated, 10);
}

class PromptCaches : public Sessions {
  protected:
    std::filesystem::path path_ = temporary_folder() / "prompt.cache";
    void TearDown() override { std::filesystem::remove(path_); }

    void save(int n_tokens) {
        plain_text(session_, prompt(n_tokens), greedy(8));
        session_.save_prompt_cache(path_);
    }
    std::string load_error(Engine& engine) {
        Session session(engine);
        plain_text(session, prompt(5), greedy(3));
        const std::vector<Token> before(session.history().begin(), session.history().end());
        const std::string message = error_of([&] { session.load_prompt_cache(path_); });
        EXPECT_EQ(std::vector<Token>(session.history().begin(), session.history().end()), before);
        return message;
    }
};

TEST_F(PromptCaches, RoundTripGivesTheSameTextWithoutPrefill) {
    save(80);
    const auto expected = plain_text(session_, prompt(80), greedy(40)).tokens;
    Session restored(engine_);
    restored.load_prompt_cache(path_);
    EXPECT_EQ(restored.history().size(), 80u) << "the prompt alone";
    const auto result = plain_text(restored, prompt(80), greedy(40));
    EXPECT_EQ(result.n_prompt_reused, 79);
    EXPECT_EQ(result.tokens, expected);
}

TEST_F(PromptCaches, MayBeEmpty) {
    session_.save_prompt_cache(path_);
    Session restored(engine_);
    restored.load_prompt_cache(path_);
    EXPECT_TRUE(restored.history().empty());
}

TEST_F(PromptCaches, AnotherModelIsRefused) {
    save(20);
    Engine other(config_of(tiny_model("tiny-llama", "Q8_0", 1)));
    EXPECT_THAT(load_error(other), HasSubstr("another model"));
}

TEST_F(PromptCaches, TokensThatTheModelLacksAreRefused) {
    save(20);
    std::vector<std::byte> bytes = read_bytes(path_);
    constexpr std::size_t kFirstToken = 48;  // after the magic and five numbers
    const Token token = engine_.info().n_vocab;
    std::memcpy(bytes.data() + kFirstToken, &token, sizeof token);
    Fnv1a hash;
    hash.add(std::span(bytes).first(bytes.size() - sizeof(std::uint64_t)));
    const std::uint64_t checksum = hash.value();
    std::memcpy(bytes.data() + bytes.size() - sizeof checksum, &checksum, sizeof checksum);
    write_bytes(path_.filename().string(), bytes);
    EXPECT_THAT(load_error(engine_), HasSubstr("token ids below"));
}

TEST_F(PromptCaches, OtherCacheTypesAreRefused) {
    save(20);
    RuntimeConfig config = config_of(tiny_model("tiny-llama", "Q8_0"));
    config.cache_type_k = CacheType::f32;
    Engine f32(config);
    EXPECT_THAT(load_error(f32), HasSubstr("`.cache_type_k`"));
}

// Our kernel and ggml's flash attention round rows to other numbers.
TEST_F(PromptCaches, Int8RowsOfAnotherPathAreRefused) {
    RuntimeConfig config = config_of(tiny_model("small-llama", "Q8_0"));
    config.cache_type_k = config.cache_type_v = CacheType::q8_0;
    Engine ours(config);
    Session session(ours);
    plain_text(session, prompt(20), greedy(8));
    session.save_prompt_cache(path_);
    Session restored(ours);
    restored.load_prompt_cache(path_);
    EXPECT_EQ(restored.history().size(), 20u);
    config.flash_attention = FlashAttention::on;
    Engine flash(config);
    EXPECT_THAT(load_error(flash), HasSubstr("`.flash_attention`"));
}

TEST_F(PromptCaches, EveryAttentionPathReadsThem) {
    save(70);
    for (const FlashAttention flash : {FlashAttention::off, FlashAttention::on}) {
        RuntimeConfig config = config_of(tiny_model("tiny-llama", "Q8_0"));
        config.kernels = Kernels::ggml;
        config.flash_attention = flash;
        Engine engine(config);
        Session session(engine);
        session.load_prompt_cache(path_);
        EXPECT_EQ(plain_text(session, prompt(70), greedy(5)).n_prompt_reused, 69);
    }
}

TEST_F(PromptCaches, LongerThanTheContextIsRefused) {
    save(200);
    Engine small(config_of(tiny_model("tiny-llama", "Q8_0"), 64));
    EXPECT_THAT(load_error(small), HasSubstr("at most 64 tokens (`.n_ctx`), found 200"));
}

TEST_F(PromptCaches, EveryDamageIsNoticed) {
    save(20);
    std::string bytes;
    {
        std::ifstream in(path_, std::ios::binary);
        bytes.assign(std::istreambuf_iterator<char>(in), {});
    }
    const auto write = [&](const std::string& content) {
        std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
    };
    for (const std::size_t at : {0ul, 9ul, 40ul, 47ul, 60ul, bytes.size() / 2, bytes.size() - 1}) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
        write(damaged);
        EXPECT_NE(load_error(engine_), "no error") << "byte " << at;
    }
    for (const std::size_t n : {1ul, 7ul, 48ul, 55ul, bytes.size() - 1}) {
        write(bytes.substr(0, n));
        EXPECT_NE(load_error(engine_), "no error") << n << " bytes left";
    }
    write(bytes);
    Session restored(engine_);
    restored.load_prompt_cache(path_);
    EXPECT_EQ(restored.history().size(), 20u) << "undamaged";
}

TEST_F(PromptCaches, UnwritablePlaceIsAnErrorAndLosesNothing) {
    plain_text(session_, prompt(20), greedy(4));
    EXPECT_NE(error_of([&] { session_.save_prompt_cache("/nonexistent/folder/x.cache"); }),
              "no error");
    EXPECT_EQ(plain_text(session_, prompt(20), greedy(4)).n_prompt_reused, 19);
}

TEST(Engines, BadConfigurationsAreRefused) {
    const auto path = tiny_model();
    const auto refuse = [&](auto change, const char* expected) {
        RuntimeConfig config = config_of(path);
        change(config);
        EXPECT_THAT(error_of([&] { Engine engine(config); }), HasSubstr(expected));
    };
    refuse([](RuntimeConfig& c) { c.n_ctx = -1; }, "`.n_ctx`: expected");
    refuse([](RuntimeConfig& c) { c.n_ctx = 1 << 20; },
           "`.n_ctx`: expected at most the model's context");
    refuse([](RuntimeConfig& c) { c.n_ubatch = 0; }, "`.n_ubatch`: expected");
    refuse([](RuntimeConfig& c) { c.n_ubatch = 5000; }, "`.n_ubatch`: expected");
    refuse([](RuntimeConfig& c) { c.n_parallel = 0; },
           "`.n_parallel`: expected 1 to 256 conversations, found 0");
    refuse([](RuntimeConfig& c) { c.n_parallel = 257; }, "`.n_parallel`: expected");
    refuse([](RuntimeConfig& c) { c.n_cache_rows = -1; },
           "`.n_cache_rows`: expected at least the context of 256 tokens");
    refuse([](RuntimeConfig& c) { c.n_cache_rows = 255; }, "found 255");
    refuse([](RuntimeConfig& c) { c.n_threads = -1; }, "`.n_threads`: expected");
    refuse([](RuntimeConfig& c) { c.n_threads = 100000; }, "threads");
    refuse([](RuntimeConfig& c) { c.model_path = "/nonexistent.gguf"; }, "/nonexistent.gguf");
}

TEST(Engines, OpenSplitModels) {
    const auto whole = tiny_model("tiny-llama", "Q8_0");
    Engine engine(config_of(whole));
    Engine parts(config_of(GgufVariant(whole).write_split("split-engine")));
    Session session(engine);
    Session split_session(parts);
    const auto prompt = engine.tokenize("hello");
    EXPECT_EQ(plain_text(split_session, prompt, {.n_predict = 20}).tokens,
              plain_text(session, prompt, {.n_predict = 20}).tokens);
}

TEST(Engines, FillInWhatWasLeftOpen) {
    Engine engine({.model_path = tiny_model()});
    EXPECT_EQ(engine.config().n_ctx, 1024) << "the model's own";
    EXPECT_GE(engine.config().n_threads, 1);
    const ModelInfo info = engine.info();
    EXPECT_EQ(info.architecture, "llama");
    EXPECT_EQ(info.n_layers, 4);
    EXPECT_THAT(info.chat_template, ::testing::HasSubstr("<|im_start|>"));
    EXPECT_GT(info.weight_bytes_per_token, 0);
    EXPECT_EQ(info.cache_bytes_per_token, info.n_layers * info.n_kv_heads * info.head_dim * 2 * 2);
}

}  // namespace
}  // namespace knap::test::session_test
