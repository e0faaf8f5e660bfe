// A request may refuse rows that the conversation or the prefix cache has. Its text is the same.
#include <vector>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::reuse_prompt_test {
namespace {

class ReusePrompt : public ::testing::Test {
  protected:
    ReusePrompt()
        : engine_({.model_path = tiny_model("tiny-llama", "Q8_0"),
                   .n_ctx = 512,
                   .n_parallel = 3,
                   .n_threads = 1}) {}

    Result generate(Session& session, bool reuse_prompt) {
        return session.generate(prompt_, {.n_predict = 20, .reuse_prompt = reuse_prompt});
    }

    Engine engine_;
    std::vector<Token> prompt_ = random_tokens(300, 256, 1);
};

TEST_F(ReusePrompt, ComputesEveryRowAgainWhenRefused) {
    Session session(engine_);
    const Result first = generate(session, true);
    const Result reused = generate(session, true);
    EXPECT_EQ(reused.n_prompt_reused, 299);
    const Result computed = generate(session, false);
    EXPECT_EQ(computed.n_prompt_reused, 0);
    EXPECT_EQ(computed.n_prompt_shared, 0);
    EXPECT_EQ(computed.tokens, first.tokens);
    EXPECT_EQ(reused.tokens, first.tokens);
    EXPECT_GT(computed.timings.prefill_tokens_per_second, 0);
    EXPECT_EQ(generate(session, true).n_prompt_reused, 299) << "its own rows serve the next one";
}

TEST_F(ReusePrompt, TakesNothingFromThePrefixCacheWhenRefused) {
    Session first(engine_);
    const Result expected = generate(first, true);
    Session second(engine_);
    const Result shared = generate(second, true);
    ASSERT_GT(shared.n_prompt_shared, 0) << "there is something to refuse";
    Session third(engine_);
    const Result computed = generate(third, false);
    EXPECT_EQ(computed.n_prompt_shared, 0);
    EXPECT_EQ(computed.n_prompt_reused, 0);
    EXPECT_EQ(computed.tokens, expected.tokens);
    // The others still have their rows.
    EXPECT_EQ(generate(first, true).tokens, expected.tokens);
    EXPECT_EQ(generate(second, false).tokens, expected.tokens);
    EXPECT_EQ(generate(first, true).tokens, expected.tokens);
}

}  // namespace
}  // namespace knap::test::reuse_prompt_test
