// The guard of all baselines (support/baseline.h): plain decoding passes it however a request ends,
// and a strategy that drafts fails it.
#include "support/baseline.h"

#include <atomic>
#include <string>
#include <vector>

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::baseline_test {
namespace {

class Baseline : public ::testing::Test {
  protected:
    static constexpr int kTokens = 40;

    Baseline()
        : engine_({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 128, .n_threads = 1}),
          session_(engine_) {}

    // Drafts in every round with the whole model, whose drafts are accepted.
    Result drafted() {
        return session_.generate(
            prompt_, {.n_predict = kTokens,
                      .speculation = {.strategy = "static", .settings = {{"plan", "full"}}},
                      .ignore_eos = true});
    }

    Engine engine_;
    Session session_;
    const std::vector<Token> prompt_ = random_tokens(20, 256, 1);
};

TEST_F(Baseline, IsPlainDecodingWhateverStrategyIsRequested) {
    const GenerateOptions options{
        .n_predict = kTokens, .speculation = {.strategy = "lookup"}, .ignore_eos = true};
    const Result result = plain_text(session_, prompt_, options);
    EXPECT_EQ(result.strategy, "autoregressive");
    EXPECT_EQ(result.n_generated, kTokens);
    EXPECT_EQ(result.speculation.rounds, kTokens - 1);
}

TEST_F(Baseline, PassesHoweverTheRequestEnds) {
    for (const int n_predict : {0, 1, 2}) {
        EXPECT_EQ(plain_text(session_, prompt_, {.n_predict = n_predict}).n_generated, n_predict);
    }
    EXPECT_EQ(plain_text(session_, prompt_, {.ignore_eos = true}).stop, StopReason::context);

    const Result whole = plain_text(session_, prompt_, {.n_predict = kTokens, .ignore_eos = true});
    GenerateOptions stopped{.n_predict = kTokens, .stop = {whole.text.substr(6, 3)}};
    EXPECT_EQ(plain_text(session_, prompt_, stopped).stop, StopReason::stop);

    // The bias makes some seeds end the text after a few tokens.
    GenerateOptions ends{.n_predict = 100};
    ends.sampling = {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f};
    for (Token token = 256; token < 260; ++token) {
        ends.sampling.logit_bias.emplace_back(token, 2.0f);
    }
    int n_ended = 0;
    for (ends.sampling.seed = 1; ends.sampling.seed <= 8; ++ends.sampling.seed) {
        n_ended += plain_text(session_, prompt_, ends).stop == StopReason::eos ? 1 : 0;
    }
    EXPECT_GT(n_ended, 0);

    std::atomic<int> n_left = 100;
    const Observer cancels{.is_cancelled = [&] { return n_left.fetch_sub(1) <= 0; }};
    const GenerateOptions options{.n_predict = 100, .ignore_eos = true};
    EXPECT_EQ(plain_text(session_, prompt_, options, cancels).stop, StopReason::cancelled);
}

TEST_F(Baseline, FailsWhenItDrafts) {
    const Result result = drafted();
    ASSERT_GT(result.speculation.n_accepted, 0);
    ::testing::TestPartResultArray failures;
    {
        const ::testing::ScopedFakeTestPartResultReporter intercept(
            ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
        expect_plain_decoding(result);
    }
    // Strategy name, drafted tokens, tree nodes, accepted tokens and rounds are each wrong.
    EXPECT_EQ(failures.size(), 5);
}

// A strategy that happens to draft nothing is no baseline either.
TEST_F(Baseline, FailsForAnotherStrategyThatDraftsNothing) {
    const Result result =
        session_.generate(prompt_, {.n_predict = 1, .speculation = {.strategy = "lookup"}});
    ASSERT_EQ(result.speculation.n_drafted, 0);
    EXPECT_NONFATAL_FAILURE(expect_plain_decoding(result), "the baseline must be plain decoding");
}

// The counts reveal a draft even when the name is right.
TEST_F(Baseline, FailsWhenPlainDecodingDrafts) {
    Result result = drafted();
    result.strategy = "autoregressive";
    result.speculation.n_tree_nodes = 0;
    result.speculation.n_accepted = 0;
    result.speculation.rounds = kTokens - 1;
    EXPECT_NONFATAL_FAILURE(expect_plain_decoding(result), "the baseline drafted");

    Result fewer_rounds = plain_text(session_, prompt_, {.n_predict = kTokens});
    --fewer_rounds.speculation.rounds;
    EXPECT_NONFATAL_FAILURE(expect_plain_decoding(fewer_rounds), "one round per token");
}

}  // namespace
}  // namespace knap::test::baseline_test
