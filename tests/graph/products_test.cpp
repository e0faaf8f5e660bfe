// Products with our kernels, in passes of whole models, beside ggml's.
#include "graph/products.h"

#include <array>
#include <ostream>

#include <gtest/gtest.h>

#include "kernels/matmul/matmul.h"
#include "model/row_invariance.h"
#include "support/loaded_model.h"
#include "support/rounding_error.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::products_test {
namespace {

struct Case {
    const char* shape;
    const char* type;
};

void PrintTo(const Case& c, std::ostream* out) {
    *out << c.shape << '/' << c.type;
}

class PackedPasses : public ::testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        if (!has_fast_matmul()) {
            GTEST_SKIP() << "no kernels of ours on this machine";
        }
    }
};

// Both round rows to eight bits, with different scales, and ours do not round rows for 16-bit
// weights. So ours are as close to products that round nothing as ggml's are, up to chance. On an
// Intel Xeon (family 6, model 207) their error is at most 1.02 times as large in the mean and 1.12
// times at the largest logit.
TEST_P(PackedPasses, RoundNoMoreThanGgmls) {
    constexpr double kMeanFactor = 1.1;
    constexpr double kLargestFactor = 1.5;
    const auto path = tiny_model(GetParam().shape, GetParam().type);
    LoadedModel plain(path);
    LoadedModel packed(path, Repack::automatic, /*n_threads=*/1, Kernels::automatic);
    ASSERT_EQ(layout_of(packed.weights->tensors().layers.front().wq), WeightLayout::packed);
    ASSERT_EQ(layout_of(packed.weights->tensors().output), WeightLayout::packed);
    const auto tokens = random_tokens(300, plain.config.n_vocab, 7);
    const auto exact = ReferenceForward(plain, 512, Factors::f32).feed(tokens);
    for (const AttentionPath attention : {AttentionPath::kernel, AttentionPath::folded}) {
        SCOPED_TRACE(to_string(attention));
        const RoundingError ggmls =
            difference(ForwardRig(plain, {.path = attention}).feed(tokens), exact);
        const RoundingError ours =
            difference(ForwardRig(packed, {.path = attention}).feed(tokens), exact);
        EXPECT_LT(ours.relative, kMeanFactor * ggmls.relative);
        EXPECT_LT(ours.max_abs, kLargestFactor * ggmls.max_abs);
    }
}

INSTANTIATE_TEST_SUITE_P(Models,
                         PackedPasses,
                         ::testing::Values(Case{"tiny-llama", "Q4_0"},
                                           Case{"tiny-llama", "Q4_1"},
                                           Case{"tiny-qwen2", "Q5_0"},
                                           Case{"tiny-llama", "Q5_1"},
                                           Case{"tiny-qwen3", "Q8_0"},
                                           Case{"small-llama", "Q2_K"},
                                           Case{"small-llama", "Q3_K"},
                                           Case{"small-llama", "Q4_K_M"},
                                           Case{"small-llama", "Q5_K"},
                                           Case{"tiny-llama", "IQ4_NL"},
                                           Case{"small-llama", "IQ4_XS"},
                                           Case{"tiny-llama", "MXFP4"},
                                           Case{"tiny-mha", "F16"},
                                           Case{"tiny-llama", "BF16"}));

// Types that we have no layout for stay ggml's, beside those that we have one for.
TEST(Products, OfOtherTypesAreGgmls) {
    const std::filesystem::path path = temporary_folder() / "other-types.gguf";
    TinyGguf("llama", {.n_embd = 256, .n_ff = 256}, GGML_TYPE_TQ1_0).write(path);
    LoadedModel model(path, Repack::automatic, 1, Kernels::automatic);
    EXPECT_EQ(layout_of(model.weights->tensors().layers.front().wq), WeightLayout::plain);
    EXPECT_EQ(model.weights->statistics().packed_types, "off");
}

TEST(Products, AreGgmlsWhereWeightsStayInTheFile) {
    LoadedModel model(tiny_model("tiny-llama", "Q4_1"), Repack::off, 1, Kernels::automatic);
    EXPECT_EQ(layout_of(model.weights->tensors().layers.front().wq), WeightLayout::plain);
}

TEST(Products, AreJoinedWhereOneFormServesAll) {
    if (!has_fast_matmul()) {
        GTEST_SKIP() << "no kernels of ours on this machine";
    }
    const auto joins = [](const char* type, Kernels kernels) {
        LoadedModel model(tiny_model("tiny-llama", type), Repack::automatic, 1, kernels);
        const LayerWeights& layer = model.weights->tensors().layers.front();
        const std::array weights{layer.wq, layer.wk, layer.wv};
        return can_join_products(weights);
    };
    EXPECT_TRUE(joins("Q4_1", Kernels::automatic));
    EXPECT_TRUE(joins("F16", Kernels::automatic));
    EXPECT_FALSE(joins("Q4_1", Kernels::ggml));
}

}  // namespace
}  // namespace knap::test::products_test
