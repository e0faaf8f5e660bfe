// Row checks agree with tests/graph/row_invariance_test.cpp about each weight type.
#include "tools/check/row_check.h"

#include <gtest/gtest.h>

#include "kernels/matmul/matmul.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::row_check_test {
namespace {

RowReport check(std::string_view shape, std::string_view type, RuntimeConfig config = {}) {
    config.model_path = tiny_model(shape, type);
    config.n_threads = 1;
    Engine engine(config);
    const auto report = check_rows(engine, random_tokens(20, engine.info().n_vocab, 3), {});
    EXPECT_TRUE(report.has_value());
    return report.value_or(RowReport{});
}

TEST(RowCheck, IntegerTypesAreExactForEveryNumberOfRows) {
    for (const char* type : {"Q8_0", "Q4_0", "Q4_1", "Q5_1"}) {
        const RowReport report = check("tiny-llama", type);
        for (const ProductRows& product : report.products) {
            EXPECT_TRUE(product.rows.is_complete()) << type;
            EXPECT_EQ(product.rows.n_tested, 16);
        }
        EXPECT_TRUE(report.passes.is_complete()) << type;
        EXPECT_EQ(report.passes.n_tested, 17);
    }
}

// If ggml uses a different kernel for 8 rows of K-quants than for fewer, agreement ends at 7.
TEST(RowCheck, AgreementEndsWhereAnotherKernelBegins) {
    const RowReport report = check("small-llama", "Q4_K", {.kernels = Kernels::ggml});
    LoadedModel model(tiny_model("small-llama", "Q4_K"), Repack::automatic);
    const auto tokens = random_tokens(8, model.config.n_vocab, 3);
    const auto alone = ForwardRig(model).feed(tokens, std::vector<int>(8, 1));
    const bool is_exact_at_8 = ForwardRig(model).feed(tokens) == alone;
    EXPECT_EQ(report.passes.n_exact, is_exact_at_8 ? 17 : 7);
    EXPECT_EQ(report.products.front().rows.n_exact, is_exact_at_8 ? 16 : 7);
}

TEST(RowCheck, AcceptsATextOfOneToken) {
    Engine engine({.model_path = tiny_model("small-llama", "Q4_K"), .n_threads = 1});
    const std::vector<Token> token{5};
    EXPECT_EQ(check_rows(engine, token, {})->passes.n_exact,
              check("small-llama", "Q4_K").passes.n_exact);
}

TEST(RowCheck, OurKernelsAreExactForEveryTypeTheyTake) {
    if (!has_fast_matmul()) {
        GTEST_SKIP() << "none of our kernels runs on this machine";
    }
    for (const char* type : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4", "Q2_K",
                             "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "F16", "BF16", "F32"}) {
        const RowReport report = check("small-llama", type);
        EXPECT_EQ(report.products.front().layout, "packed") << type;
        EXPECT_TRUE(report.passes.is_complete()) << type;
    }
}

TEST(RowCheck, ReportsTheAttentionPathInUse) {
    EXPECT_EQ(check("tiny-llama", "Q8_0", {.flash_attention = FlashAttention::on}).attention_path,
              "flash");
    EXPECT_EQ(check("tiny-llama", "Q8_0", {.kernels = Kernels::ggml}).attention_path, "folded");
}

TEST(RowCheck, ListsEveryKindOfMatrixOnce) {
    const RowReport report = check("tiny-llama", "Q8_0");
    Engine engine({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_threads = 1});
    const ModelInfo info = engine.info();
    int n_matrices = 0;
    for (std::size_t i = 0; i < report.products.size(); ++i) {
        const ProductRows& product = report.products[i];
        n_matrices += product.n_matrices;
        EXPECT_EQ(product.layout, has_fast_matmul() ? "packed" : "plain");
        for (std::size_t j = 0; j < i; ++j) {
            const ProductRows& other = report.products[j];
            EXPECT_FALSE(other.type == product.type && other.n_in == product.n_in &&
                         other.n_out == product.n_out);
        }
    }
    EXPECT_EQ(n_matrices, 7 * info.n_layers + 1);
    EXPECT_EQ(report.products.back().n_out, info.n_vocab);
}

TEST(RowCheck, MeasuresRepackedMatricesInTheirLayout) {
    RuntimeConfig config{.model_path = tiny_model("small-llama", "Q4_0"),
                         .n_threads = 1,
                         .repack = Repack::on,
                         .kernels = Kernels::ggml};
    Engine engine(config);
    Session session(engine);
    const std::vector<Token> prompt{1};
    const bool is_repacked = session.generate(prompt, {.n_predict = 0}).repack != "off";
    EXPECT_EQ(check("small-llama", "Q4_0", config).products.front().layout,
              is_repacked ? "repacked" : "plain");
}

TEST(RowCheck, EndsWhenCancelled) {
    Engine engine({.model_path = tiny_model("tiny-llama", "Q8_0"), .n_threads = 1});
    const std::vector<Token> tokens{1, 2, 3};
    EXPECT_FALSE(check_rows(engine, tokens, {.is_cancelled = [] { return true; }}));
    int n_polls = 0;  // cancels after the products, during the passes
    const auto later = [&] { return ++n_polls > 10; };
    EXPECT_FALSE(check_rows(engine, tokens, {.is_cancelled = later}));
}

}  // namespace
}  // namespace knap::test::row_check_test
