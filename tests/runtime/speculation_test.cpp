// Speculation through the public face: limits, stop strings, penalties and cancelling are those of
// plain decoding, and the statistics say what happened.
#include <atomic>
#include <cctype>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "kernels/attention/attention.h"
#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"
#include "tools/measure/contenders.h"

namespace knap::test::runtime_speculation_test {
namespace {

using ::testing::HasSubstr;

const SpeculationOptions kWindow{.strategy = "static", .settings = {{"plan", "a=w4+20"}}};
const SpeculationOptions kSkip{
    .strategy = "static", .draft_max = 12, .settings = {{"plan", "m1=skip"}}};
const SpeculationOptions kWhole{
    .strategy = "static", .draft_max = 5, .settings = {{"plan", "full"}}};
const SpeculationOptions kTree{.strategy = "static",
                               .settings = {{"plan", "m1=skip"}, {"width", "4"}}};
const SpeculationOptions kReduced{.strategy = "static",
                                  .settings = {{"plan", "m1=skip,head=reduced"}}};
const SpeculationOptions kLookup{.strategy = "lookup"};
const SpeculationOptions kCascade{
    .strategy = "cascade", .draft_max = 9, .settings = {{"plan", "a2=w4+20,m3=skip"}}};

class SpeculativeSession : public ::testing::Test {
  protected:
    explicit SpeculativeSession(RuntimeConfig config = {.n_ctx = 256, .n_threads = 1})
        : engine_(with_model(std::move(config))), session_(engine_) {}

    static RuntimeConfig with_model(RuntimeConfig config) {
        config.model_path = tiny_model("tiny-llama", "Q8_0");
        return config;
    }

    static std::vector<Token> prompt(int n, unsigned seed = 1) {
        return random_tokens(n, 256, seed);
    }

    Result generate(std::span<const Token> tokens,
                    GenerateOptions options,
                    const SpeculationOptions& speculation,
                    const Observer& observer = {}) {
        options.speculation = speculation;
        return session_.generate(tokens, options, observer);
    }

    // Plain decoding and every draft source give the same tokens, text and reason to stop.
    void expect_plain_text(std::span<const Token> tokens, const GenerateOptions& options) {
        const Result plain = plain_text(session_, tokens, options);
        for (const SpeculationOptions& speculation :
             {kWindow, kSkip, kWhole, kReduced, kLookup, kCascade}) {
            SCOPED_TRACE(describe_options(speculation));
            const Result result = generate(tokens, options, speculation);
            EXPECT_EQ(result.tokens, plain.tokens);
            EXPECT_EQ(result.text, plain.text);
            EXPECT_EQ(result.stop, plain.stop);
        }
    }

    Engine engine_;
    Session session_;
};

// What a reference is right about is copied; what it is wrong about costs nothing but time.
TEST_F(SpeculativeSession, ReferencesChangeNothingButTheNumberOfPasses) {
    const std::vector<Token> tokens = prompt(20);
    // At a high temperature, so that the text has little of itself to copy.
    const GenerateOptions request{
        .n_predict = 60, .sampling = {.temperature = 1.5f, .seed = 3}, .ignore_eos = true};
    const Result plain = plain_text(session_, tokens, request);
    const Result alone = generate(tokens, request, kLookup);
    GenerateOptions with_answer = request;
    with_answer.references = {prompt(50, 7), plain.tokens};
    GenerateOptions with_noise = request;
    with_noise.references = {prompt(200, 8)};
    with_noise.prediction = prompt(60, 9);
    for (const SpeculationOptions& speculation : {kLookup, kCascade, SpeculationOptions()}) {
        SCOPED_TRACE(describe_options(speculation));
        EXPECT_EQ(generate(tokens, with_answer, speculation).tokens, plain.tokens);
        EXPECT_EQ(generate(tokens, with_noise, speculation).tokens, plain.tokens);
    }
    const Result copied = generate(tokens, with_answer, kLookup);
    EXPECT_GT(copied.speculation.copies.n_accepted, 40);
    EXPECT_LT(copied.speculation.rounds, alone.speculation.rounds);
}

TEST_F(SpeculativeSession, ReferencesNeedKnownTokens) {
    for (const Token bad : {-1, engine_.info().n_vocab}) {
        GenerateOptions request{.n_predict = 1};
        request.references = {{1, bad}};
        EXPECT_THROW(generate(prompt(5), request, kLookup), Error) << bad;
    }
}

TEST_F(SpeculativeSession, EndsAtTheTokenThatWasAskedFor) {
    for (const int n : {0, 1, 2, 3, 7, 20}) {
        expect_plain_text(prompt(10), {.n_predict = n, .ignore_eos = true});
    }
}

TEST_F(SpeculativeSession, FillsTheContextToItsLastToken) {
    expect_plain_text(prompt(240), {.ignore_eos = true});
    expect_plain_text(prompt(255), {.ignore_eos = true});
    expect_plain_text(prompt(256), {.ignore_eos = true});
}

TEST_F(SpeculativeSession, EndsWhereTheModelEndsTheText) {
    // Makes the end likely, so that it comes inside drafts.
    GenerateOptions options{.n_predict = 200};
    options.sampling = {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
    for (Token token = 256; token < 260; ++token) {
        options.sampling.logit_bias.emplace_back(token, 2.0f);
    }
    int n_ended = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        options.sampling.seed = seed;
        expect_plain_text(prompt(12), options);
        n_ended += generate(prompt(12), options, kWhole).stop == StopReason::eos ? 1 : 0;
    }
    EXPECT_GT(n_ended, 0);
}

TEST_F(SpeculativeSession, StopStringsEndTheTextInsideADraft) {
    // Sampled, because the tiny model's greedy text has hardly a letter in it.
    GenerateOptions options{.n_predict = 60, .ignore_eos = true};
    options.sampling = {.temperature = 1.0f, .top_k = 0, .seed = 4};
    const Result plain = plain_text(session_, prompt(30), options);
    int n_stops = 0;
    for (const char character : plain.text) {
        if (std::isprint(static_cast<unsigned char>(character)) == 0) {
            continue;
        }
        options.stop = {std::string(1, character)};
        expect_plain_text(prompt(30), options);
        ++n_stops;
    }
    EXPECT_GE(n_stops, 3) << "characters that can stop the text";
}

TEST_F(SpeculativeSession, PenaltiesAndBiasAreThoseOfPlainDecoding) {
    GenerateOptions options{.n_predict = 60, .ignore_eos = true};
    options.sampling = {.temperature = 0.7f,
                        .repeat_penalty = 1.4f,
                        .frequency_penalty = 0.3f,
                        .repeat_last_n = 16,
                        .seed = 3,
                        .logit_bias = {{40, 3.0f}, {41, -2.0f}}};
    expect_plain_text(prompt(50), options);
    options.sampling.temperature = 0.0f;
    expect_plain_text(prompt(50), options);
}

TEST_F(SpeculativeSession, SessionGoesOnAfterADraftThatWasCutShort) {
    // The cache keeps what was said and nothing of what was not.
    for (const SpeculationOptions& speculation : {kWhole, kWindow, kTree}) {
        session_.reset();
        const Result first =
            generate(prompt(20), {.n_predict = 9, .ignore_eos = true}, speculation);
        std::vector<Token> longer = prompt(20);
        longer.insert(longer.end(), first.tokens.begin(), first.tokens.end());
        longer.push_back(17);
        const Result second = generate(longer, {.n_predict = 15, .ignore_eos = true}, kWhole);
        EXPECT_GE(second.n_prompt_reused, 28);

        Session fresh(engine_);
        const Result plain = plain_text(fresh, longer, {.n_predict = 15, .ignore_eos = true});
        EXPECT_EQ(second.tokens, plain.tokens) << describe_options(speculation);
    }
}

TEST_F(SpeculativeSession, StatisticsAddUp) {
    const Result result = generate(prompt(40), {.n_predict = 50, .ignore_eos = true}, kSkip);
    const SpeculationStatistics& s = result.speculation;
    EXPECT_GT(s.n_drafted, 0);
    EXPECT_EQ(s.n_tree_nodes, s.n_drafted) << "a chain";
    EXPECT_EQ(result.n_generated, 1 + s.rounds + s.n_accepted)
        << "the prompt gives one token, each round one and what it accepts";
    EXPECT_DOUBLE_EQ(s.acceptance_rate, static_cast<double>(s.n_accepted) / s.n_drafted);
    EXPECT_DOUBLE_EQ(s.mean_accepted_length, 49.0 / s.rounds);
    ASSERT_FALSE(s.acceptance_by_position.empty());
    EXPECT_LE(s.acceptance_by_position.size(), 12u);
    EXPECT_TRUE(s.row_invariant);
    EXPECT_TRUE(s.near_ties.empty());
    EXPECT_FALSE(s.is_projection);
    const Timings& t = result.timings;
    EXPECT_NEAR(t.draft_ms + t.verify_ms + t.search_ms + t.other_ms, t.decode_ms, 1e-6);
    EXPECT_GT(t.draft_ms, 0);
    EXPECT_GT(t.verify_ms, 0);
    EXPECT_EQ(result.strategy, "static");
}

TEST_F(SpeculativeSession, StatisticsNameTheSourceOfEveryDraft) {
    const auto statistics_of = [&](const SpeculationOptions& speculation) {
        const Result result =
            generate(prompt(60), {.n_predict = 100, .ignore_eos = true}, speculation);
        const SpeculationStatistics& s = result.speculation;
        const auto sum = [&](int SourceStatistics::*count) {
            return s.copies.*count + s.plans.*count + s.cascades.*count;
        };
        EXPECT_LE(sum(&SourceStatistics::rounds), s.rounds);
        EXPECT_EQ(sum(&SourceStatistics::n_drafted), s.n_drafted);
        EXPECT_EQ(sum(&SourceStatistics::n_accepted), s.n_accepted);
        return s;
    };
    const SpeculationStatistics window = statistics_of(kWindow);
    EXPECT_GT(window.plans.n_accepted, 0);
    EXPECT_EQ(window.copies.rounds + window.cascades.rounds, 0);
    const SpeculationStatistics lookup = statistics_of(kLookup);
    EXPECT_GT(lookup.copies.n_accepted, 0);
    EXPECT_LT(lookup.copies.rounds, lookup.rounds) << "some rounds find nothing to copy";
    EXPECT_EQ(lookup.plans.rounds + lookup.cascades.rounds, 0);
    const SpeculationStatistics cascade = statistics_of(kCascade);
    EXPECT_GT(cascade.cascades.rounds, 0);
    EXPECT_GT(cascade.plans.rounds, 0) << "some rounds have no guess to check";
    EXPECT_EQ(cascade.copies.rounds, 0) << "a guess is no draft";
    EXPECT_EQ(statistics_of(plain_decoding()).n_drafted, 0);
    const SpeculationStatistics tree = statistics_of(kTree);
    EXPECT_EQ(tree.plans.n_drafted, tree.n_drafted) << "along the longest path";
}

TEST_F(SpeculativeSession, WholeModelAsDraftIsAlwaysAccepted) {
    const Result result = generate(prompt(40), {.n_predict = 49, .ignore_eos = true}, kWhole);
    EXPECT_EQ(result.speculation.n_accepted, result.speculation.n_drafted);
    EXPECT_EQ(result.speculation.rounds, 8) << "five drafts and a bonus token a round";
}

TEST_F(SpeculativeSession, TreesHaveMoreNodesThanDepth) {
    const Result result = generate(prompt(40), {.n_predict = 50, .ignore_eos = true}, kTree);
    EXPECT_EQ(result.speculation.n_tree_nodes, 4 * result.speculation.n_drafted);
}

TEST_F(SpeculativeSession, TreesAreExactWhereOurAttentionRuns) {
    if (!has_fast_attention()) {
        GTEST_SKIP() << "it does not on this machine";
    }
    const GenerateOptions options{.n_predict = 150, .ignore_eos = true};
    const Result tree = generate(prompt(40), options, kTree);
    EXPECT_TRUE(tree.speculation.row_invariant);
    EXPECT_TRUE(tree.speculation.near_ties.empty());
    EXPECT_EQ(tree.tokens, plain_text(session_, prompt(40), options).tokens);

    Engine ggml_engine(with_model({.n_ctx = 256, .n_threads = 1, .kernels = Kernels::ggml}));
    GenerateOptions with_tree = options;
    with_tree.speculation = kTree;
    const Result other = Session(ggml_engine).generate(prompt(40), with_tree);
    EXPECT_FALSE(other.speculation.row_invariant);
}

// ggml's products with K-quants keep their bits up to 7 rows.
TEST(ExactVerification, KeepsToTheRowsThatHaveTheBitsOfOneUnlessToldOtherwise) {
    for (const bool exact : {true, false}) {
        Engine engine({.model_path = tiny_model("small-llama", "Q4_K"),
                       .n_ctx = 256,
                       .n_threads = 1,
                       .exact = exact,
                       .kernels = Kernels::ggml});
        GenerateOptions options{.n_predict = 40, .ignore_eos = true};
        options.speculation = {
            .strategy = "static", .draft_max = 12, .settings = {{"plan", "full"}}};
        const Result result = Session(engine).generate(random_tokens(20, 256, 1), options);
        EXPECT_EQ(result.speculation.row_invariant, exact);
        EXPECT_EQ(result.speculation.n_drafted <= 6 * result.speculation.rounds, exact);
    }
}

TEST_F(SpeculativeSession, OriginsFollowTheRounds) {
    std::vector<TokenOrigin> origins;
    const Observer observer{
        .on_token = [&](const TokenEvent& event) { origins.push_back(event.origin); }};
    const Result result =
        generate(prompt(40), {.n_predict = 13, .ignore_eos = true}, kWhole, observer);
    ASSERT_EQ(origins.size(), static_cast<std::size_t>(result.n_generated));
    std::vector<TokenOrigin> expected{TokenOrigin::plain};
    for (int round = 0; round < 2; ++round) {
        expected.insert(expected.end(), 5, TokenOrigin::accepted);
        expected.push_back(TokenOrigin::bonus);
    }
    EXPECT_EQ(origins, expected);

    origins.clear();
    const SpeculationOptions bad{.strategy = "static", .settings = {{"plan", "l=skip"}}};
    generate(prompt(40), {.n_predict = 13, .ignore_eos = true}, bad, observer);
    EXPECT_THAT(origins, ::testing::Contains(TokenOrigin::corrected));
}

TEST_F(SpeculativeSession, AssumedAcceptanceIsAProjection) {
    SpeculationOptions assumed{
        .strategy = "static", .draft_max = 4, .settings = {{"plan", "l=skip"}}};
    assumed.assume_acceptance = 1.0;
    const Result all = generate(prompt(40), {.n_predict = 51, .ignore_eos = true}, assumed);
    EXPECT_TRUE(all.speculation.is_projection);
    EXPECT_EQ(all.speculation.rounds, 10);
    assumed.assume_acceptance = 0.0;
    const Result none = generate(prompt(40), {.n_predict = 21, .ignore_eos = true}, assumed);
    EXPECT_EQ(none.speculation.n_accepted, 0);
    assumed.assume_acceptance = 0.5;
    const Result half = generate(prompt(40), {.n_predict = 150, .ignore_eos = true}, assumed);
    EXPECT_NEAR(half.speculation.acceptance_by_position.front(), 0.5, 0.2);
}

TEST_F(SpeculativeSession, CancellingInsideARoundLeavesAUsableSession) {
    std::atomic<int> n_polls{0};
    const Observer observer{.is_cancelled = [&] { return ++n_polls > 400; }};
    const Result cut =
        generate(prompt(40), {.n_predict = 200, .ignore_eos = true}, kWhole, observer);
    EXPECT_EQ(cut.stop, StopReason::cancelled);
    expect_plain_text(prompt(40), {.n_predict = 20, .ignore_eos = true});
}

TEST_F(SpeculativeSession, RatioRuleIsReproducibleAndDrawsAnotherText) {
    GenerateOptions options{.n_predict = 60, .ignore_eos = true};
    options.sampling = {.temperature = 1.0f, .seed = 5};
    SpeculationOptions ratio = kSkip;
    ratio.acceptance = AcceptanceRule::ratio;
    const Result first = generate(prompt(40), options, ratio);
    EXPECT_EQ(generate(prompt(40), options, ratio).tokens, first.tokens);
    EXPECT_NE(plain_text(session_, prompt(40), options).tokens, first.tokens);
    EXPECT_GT(first.speculation.n_accepted, 0);
}

TEST_F(SpeculativeSession, ReducedHeadsFollowTheTextAtHandAlone) {
    // The ratio rule's text depends on what the draft could choose from.
    GenerateOptions options{.n_predict = 60, .ignore_eos = true};
    options.sampling = {.temperature = 1.0f, .seed = 5};
    SpeculationOptions ratio = kReduced;
    ratio.acceptance = AcceptanceRule::ratio;
    const Result first = generate(prompt(40), options, ratio);
    generate(prompt(200, 9), options, ratio);
    EXPECT_EQ(generate(prompt(40), options, ratio).tokens, first.tokens);
    EXPECT_GT(first.speculation.n_drafted, first.speculation.n_accepted);
}

TEST_F(SpeculativeSession, ReducedHeadsDraftWhateverIsForbidden) {
    // All that is allowed lies outside of the ids that a reduced head always has.
    GenerateOptions options{.n_predict = 30, .ignore_eos = true};
    for (Token token = 0; token < 240; ++token) {
        options.sampling.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
    }
    expect_plain_text(prompt(20), options);
    EXPECT_GT(generate(prompt(20), options, kReduced).speculation.n_drafted, 0);
}

TEST(RepackedHeads, AreNotReduced) {
    Engine engine({.model_path = tiny_model("tiny-llama", "Q4_0"),
                   .n_ctx = 128,
                   .n_threads = 1,
                   .kernels = Kernels::ggml});
    Session session(engine);
    const std::vector<Token> prompt = random_tokens(10, 256, 1);
    if (plain_text(session, prompt, {.n_predict = 1}).repack == "off") {
        GTEST_SKIP() << "no repacked layouts on this machine";
    }
    GenerateOptions options{.n_predict = 5};
    options.speculation = kReduced;
    try {
        session.generate(prompt, options);
        FAIL() << "ran";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::StartsWith("`.settings[plan]`: expected head=full"));
    }
}

TEST_F(SpeculativeSession, BadOptionsAreRefusedBeforeAnythingChanges) {
    plain_text(session_, prompt(20), {.n_predict = 5, .ignore_eos = true});
    const auto history = std::vector<Token>(session_.history().begin(), session_.history().end());
    const auto error_of = [&](const SpeculationOptions& options) {
        try {
            generate(prompt(30, 2), {.n_predict = 5}, options);
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    EXPECT_THAT(error_of({.strategy = "magic"}), HasSubstr("magic"));
    EXPECT_THAT(error_of({.strategy = "static", .settings = {{"plan", "a99=skip"}}}),
                HasSubstr("99"));
    EXPECT_THAT(error_of({.strategy = "static"}), HasSubstr("`.settings[plan]`"));
    EXPECT_THAT(error_of({.strategy = "lookup", .draft_max = 1000}), HasSubstr("`.draft_max`"));
    EXPECT_THAT(error_of({.strategy = "lookup", .assume_acceptance = 2}),
                HasSubstr("`.assume_acceptance`"));
    EXPECT_TRUE(std::equal(history.begin(), history.end(), session_.history().begin(),
                           session_.history().end()));
}

class SmallPasses : public SpeculativeSession {
  protected:
    SmallPasses() : SpeculativeSession({.n_ctx = 256, .n_threads = 1, .n_ubatch = 3}) {}
};

TEST_F(SmallPasses, DraftsKeepToTheRowsOfAPass) {
    expect_plain_text(prompt(30), {.n_predict = 30, .ignore_eos = true});
    const Result tree = generate(prompt(30), {.n_predict = 30, .ignore_eos = true}, kTree);
    EXPECT_LE(tree.speculation.n_tree_nodes, 2 * tree.speculation.rounds);
}

}  // namespace
}  // namespace knap::test::runtime_speculation_test
