// Rounding of verifications. tests/graph/row_invariance_test.cpp has more weight types.
#include "tools/check/verification_error.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::verification_error_test {
namespace {

VerificationError measure(std::string_view shape,
                          std::string_view type,
                          RuntimeConfig config = {}) {
    config.model_path = tiny_model(shape, type);
    config.n_threads = 1;
    config.n_ctx = config.n_ctx > 0 ? config.n_ctx : 256;
    Engine engine(config);
    const std::vector<CheckPrompt> prompts{{"short", random_tokens(3, 256, 1)},
                                           {"long", random_tokens(150, 256, 2)}};
    const auto error = measure_verifications(engine, prompts, {});
    EXPECT_TRUE(error.has_value());
    return error.value_or(VerificationError{});
}

TEST(VerificationErrors, AreZeroWherePassesAreBatchInvariant) {
    if (!has_fast_attention()) {
        GTEST_SKIP() << "trees are exact with our attention kernel only";
    }
    const VerificationError error = measure("tiny-llama", "Q8_0");
    EXPECT_EQ(error.chains, 0);
    EXPECT_EQ(error.trees, 0);
    EXPECT_EQ(error.max_rows, 64);
    EXPECT_GT(error.n_rows, 2 * 64);
    EXPECT_EQ(near_tie_bound(error), 0) << "any divergence is a mismatch";
}

TEST(VerificationErrors, OfTreesOnlyOnTheFoldedPath) {
    const VerificationError error = measure("tiny-llama", "Q8_0", {.kernels = Kernels::ggml});
    EXPECT_EQ(error.chains, 0);
    EXPECT_GT(error.trees, 0);
    EXPECT_EQ(error.largest(), error.trees);
}

TEST(VerificationErrors, OfFloatWeightsAreSmallButNotZero) {
    const VerificationError error = measure("tiny-llama", "F32", {.kernels = Kernels::ggml});
    EXPECT_GT(error.chains, 0);
    EXPECT_GT(error.gap_change, 0);
    EXPECT_LE(error.gap_change, 2 * error.largest());
    EXPECT_DOUBLE_EQ(near_tie_bound(error), 2 * error.gap_change);
}

// ggml's products with K-quants are batch-invariant up to 7 rows, and sessions keep to that.
TEST(VerificationErrors, AreThoseOfTheRowsThatSessionsVerify) {
    const VerificationError exact = measure("small-llama", "Q4_K", {.kernels = Kernels::ggml});
    EXPECT_EQ(exact.max_rows, 7);
    EXPECT_EQ(exact.chains, 0);
    const VerificationError any =
        measure("small-llama", "Q4_K", {.exact = false, .kernels = Kernels::ggml});
    EXPECT_EQ(any.max_rows, 64);
    // Some machines have one kernel for all numbers of rows.
    LoadedModel model(tiny_model("small-llama", "Q4_K"));
    const auto tokens = random_tokens(8, 256, 3);
    const bool is_exact_at_8 =
        ForwardRig(model).feed(tokens) == ForwardRig(model).feed(tokens, std::vector<int>(8, 1));
    EXPECT_EQ(any.chains == 0, is_exact_at_8);
}

TEST(VerificationErrors, KeepToTheContextAndToTheRowsOfAPass) {
    EXPECT_EQ(measure("tiny-llama", "F32", {.n_ctx = 16, .n_ubatch = 5}).max_rows, 5);
    EXPECT_EQ(measure("tiny-llama", "F32", {.n_ctx = 2}).max_rows, 1) << "nothing can be drafted";
}

TEST(VerificationErrors, LeaveNoBoundWhereALogitIsNotANumber) {
    VerificationError error{.chains = 0.5};
    error.include({.trees = std::nan(""), .gap_change = std::nan("")});
    error.include({.chains = 1, .trees = 2, .gap_change = 2});
    EXPECT_EQ(error.chains, 1);
    EXPECT_TRUE(std::isnan(error.largest()));
    EXPECT_FALSE(0.0 < near_tie_bound(error)) << "no gap is below it";
}

// What `knap check` requires, on the attention paths and types that round.
TEST(VerificationErrors, StayWithinTheLimitOfRounding) {
    for (const char* type : {"F32", "F16", "Q8_0"}) {
        for (const FlashAttention flash : {FlashAttention::off, FlashAttention::on}) {
            Engine engine({.model_path = tiny_model("tiny-llama", type),
                           .n_ctx = 256,
                           .n_threads = 1,
                           .flash_attention = flash,
                           .kernels = Kernels::ggml});
            const std::vector<CheckPrompt> prompts{{"a", random_tokens(150, 256, 2)}};
            const auto error = measure_verifications(engine, prompts, {});
            const auto peer = check_against_libllama(engine, prompts, {});
            ASSERT_TRUE(error && peer);
            EXPECT_LE(error->gap_change, rounding_limit(*peer)) << type;
        }
    }
}

TEST(VerificationErrors, EndWhenCancelled) {
    Engine engine({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_ctx = 128, .n_threads = 1});
    const std::vector<CheckPrompt> prompts{{"a", random_tokens(9, 256, 1)}};
    EXPECT_FALSE(measure_verifications(engine, prompts, {.is_cancelled = [] { return true; }}));
}

}  // namespace
}  // namespace knap::test::verification_error_test
