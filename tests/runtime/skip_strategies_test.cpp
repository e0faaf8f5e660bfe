// Strategies that draft with fewer modules by simple rules, on a model: the text is plain
// decoding's, whatever they leave out and whenever they are interrupted.
#include <atomic>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test {
namespace {

// Settings with which something is drafted and something accepted, on random weights too.
const SpeculationOptions kWays[] = {
    {.strategy = "draft-verify", .draft_plan = "a1-2=skip,m1=skip"},
    {.strategy = "draft-verify", .draft_plan = "a1=skip", .strategy_options = "start=0.01,eps=0"},
    {.strategy = "asd", .strategy_options = "theta=-1,start=0.01"},
    {.strategy = "asd", .strategy_options = "theta=-1,max-run=1,refresh=2,rows=5,start=0"},
    {.strategy = "layerskip"},
    {.strategy = "layerskip", .draft_max = 2, .strategy_options = "exit=3"},
};

class SkipStrategies : public ::testing::TestWithParam<SpeculationOptions> {
  protected:
    SkipStrategies()
        : engine_({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 512, .n_threads = 1}),
          session_(engine_) {}

    Result generate(const SpeculationOptions& speculation,
                    const SamplingOptions& sampling = {},
                    const Observer& observer = {}) {
        const std::vector<Token> prompt = random_tokens(30, 256, /*seed=*/1);
        return session_.generate(prompt,
                                 {.n_predict = 100,
                                  .sampling = sampling,
                                  .speculation = speculation,
                                  .ignore_eos = true},
                                 observer);
    }

    Engine engine_;
    Session session_;
};

TEST_P(SkipStrategies, WriteWhatPlainDecodingWrites) {
    const Result plain = generate(plain_decoding());
    for (const char* request : {"first", "second"}) {
        const Result result = generate(GetParam());
        EXPECT_EQ(result.tokens, plain.tokens) << request;
        EXPECT_TRUE(result.speculation.row_invariant);
        EXPECT_GT(result.speculation.n_drafted, 0);
    }
}

TEST_P(SkipStrategies, WriteWhatPlainSamplingWrites) {
    const SamplingOptions sampling{.temperature = 0.8f, .repeat_penalty = 1.2f, .seed = 3};
    const Result plain = generate(plain_decoding(), sampling);
    for (const AcceptanceRule rule : {AcceptanceRule::shared_noise, AcceptanceRule::equality}) {
        SpeculationOptions options = GetParam();
        options.acceptance = rule;
        EXPECT_EQ(generate(options, sampling).tokens, plain.tokens);
    }
}

TEST_P(SkipStrategies, SampleByTheRatioRule) {
    SpeculationOptions options = GetParam();
    options.acceptance = AcceptanceRule::ratio;
    EXPECT_EQ(generate(options, {.temperature = 0.8f, .seed = 3}).n_generated, 100);
}

TEST_P(SkipStrategies, MayBeCancelledAnywhere) {
    const Result plain = generate(plain_decoding());
    int n_cancelled = 0;
    for (int n_polls = 1; n_polls < 400; n_polls = n_polls * 3 / 2 + 1) {
        std::atomic<int> n_left = n_polls;
        const Observer observer{.is_cancelled = [&] { return n_left.fetch_sub(1) <= 0; }};
        const Result result = generate(GetParam(), {}, observer);
        ASSERT_LE(result.tokens.size(), plain.tokens.size());
        EXPECT_TRUE(std::equal(result.tokens.begin(), result.tokens.end(), plain.tokens.begin()));
        n_cancelled += result.stop == StopReason::cancelled ? 1 : 0;
    }
    EXPECT_GT(n_cancelled, 3);
    EXPECT_EQ(generate(GetParam()).tokens, plain.tokens);
}

INSTANTIATE_TEST_SUITE_P(Ways, SkipStrategies, ::testing::ValuesIn(kWays));

}  // namespace
}  // namespace knap::test
