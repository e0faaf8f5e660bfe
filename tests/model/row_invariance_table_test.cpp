#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/matmul/matmul.h"
#include "model/row_invariance.h"
#include "support/loaded_model.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::row_invariance_table_test {
namespace {

TEST(RowInvarianceTable, HasTheMeasuredLimits) {
    for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1, GGML_TYPE_Q5_0,
                                 GGML_TYPE_Q5_1, GGML_TYPE_MXFP4}) {
        EXPECT_EQ(row_invariant_rows(type, WeightLayout::plain), kAnyRows) << ggml_type_name(type);
    }
    for (const ggml_type type : {GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4}) {
        EXPECT_EQ(row_invariant_rows(type, WeightLayout::repacked), kAnyRows)
            << ggml_type_name(type);
    }
    for (const ggml_type type :
         {GGML_TYPE_Q2_K, GGML_TYPE_Q3_K, GGML_TYPE_Q4_K, GGML_TYPE_Q5_K, GGML_TYPE_Q6_K}) {
        EXPECT_EQ(row_invariant_rows(type, WeightLayout::plain), 7) << ggml_type_name(type);
    }
    for (const ggml_type type : {GGML_TYPE_Q2_K, GGML_TYPE_Q4_K}) {
        EXPECT_EQ(row_invariant_rows(type, WeightLayout::repacked), 3) << ggml_type_name(type);
    }
}

TEST(RowInvarianceTable, PromisesNothingThatWasNotMeasured) {
    for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_IQ4_NL,
                                 GGML_TYPE_IQ2_XXS, GGML_TYPE_TQ1_0, GGML_TYPE_NVFP4}) {
        EXPECT_EQ(row_invariant_rows(type, WeightLayout::plain), 1) << ggml_type_name(type);
    }
    for (const ggml_type type : {GGML_TYPE_Q8_0, GGML_TYPE_Q6_K}) {
        EXPECT_EQ(row_invariant_rows(type, WeightLayout::repacked), 1) << ggml_type_name(type);
    }
    EXPECT_EQ(row_invariant_rows(GGML_TYPE_Q8_0, WeightLayout::other), 1);
    EXPECT_EQ(row_invariant_rows(GGML_TYPE_F16, WeightLayout::cuda), 1);
    EXPECT_EQ(row_invariant_rows(GGML_TYPE_Q4_K, WeightLayout::cuda), 4);
    EXPECT_EQ(row_invariant_rows(GGML_TYPE_Q4_K, WeightLayout::strips), kAnyRows);
    EXPECT_EQ(row_invariant_rows(GGML_TYPE_F16, WeightLayout::strips), kAnyRows);
}

TEST(RowInvarianceTable, ProductsByExpertHaveLimitsOfTheirOwn) {
    EXPECT_EQ(row_invariant_rows_by_id(GGML_TYPE_F32, WeightLayout::plain), kAnyRows);
    EXPECT_EQ(row_invariant_rows_by_id(GGML_TYPE_Q8_0, WeightLayout::plain), kAnyRows);
    EXPECT_EQ(row_invariant_rows_by_id(GGML_TYPE_Q4_K, WeightLayout::plain), 7);
    EXPECT_EQ(row_invariant_rows_by_id(GGML_TYPE_IQ3_XXS, WeightLayout::plain), 7);
    EXPECT_EQ(row_invariant_rows_by_id(GGML_TYPE_Q4_K, WeightLayout::packed), kAnyRows);
    EXPECT_EQ(row_invariant_rows_by_id(GGML_TYPE_Q4_0, WeightLayout::cuda), 1);
}

// Of a model with experts, ggml's product with the router is exact for single rows only.
TEST(ModelRowInvariance, RoutersCountUnlessTheyArePacked) {
    const auto path = tiny_model("tiny-qwen3moe", "Q8_0");
    EXPECT_EQ(row_invariant_rows(*LoadedModel(path).weights), 1);
    if (has_fast_matmul()) {
        const LoadedModel packed(path, Repack::automatic, 1, Kernels::automatic);
        EXPECT_EQ(row_invariant_rows(*packed.weights), kAnyRows);
    }
}

int rows_of(const TinyGguf& tiny, Repack repack = Repack::off) {
    const std::filesystem::path path = temporary_folder() / "row-invariance.gguf";
    tiny.write(path);
    return row_invariant_rows(*LoadedModel(path, repack).weights);
}

TEST(ModelRowInvariance, IsTheMinimumOverTheMatrices) {
    const TinySizes wide{.n_embd = 256, .n_ff = 256};
    TinyGguf tiny("llama", wide, GGML_TYPE_Q8_0);
    EXPECT_EQ(rows_of(tiny), kAnyRows);
    for (const char* name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.1.attn_v.weight",
                             "blk.1.attn_output.weight", "blk.0.ffn_gate.weight",
                             "blk.1.ffn_up.weight", "blk.1.ffn_down.weight", "output.weight"}) {
        TinyGguf mixed("llama", wide, GGML_TYPE_Q8_0);
        mixed.tensor(name).type = GGML_TYPE_Q6_K;
        EXPECT_EQ(rows_of(mixed), 7) << name;
        mixed.tensor("blk.0.ffn_up.weight").type = GGML_TYPE_F16;
        EXPECT_EQ(rows_of(mixed), 1) << name;
    }
}

TEST(ModelRowInvariance, EmbeddingCountsOnlyAsATiedHead) {
    TinyGguf tiny("llama", {}, GGML_TYPE_Q8_0);
    tiny.tensor("token_embd.weight").type = GGML_TYPE_F16;
    EXPECT_EQ(rows_of(tiny), kAnyRows);
    tiny.remove_tensor("output.weight");
    EXPECT_EQ(rows_of(tiny), 1);
}

TEST(ModelRowInvariance, NormsAndBiasesDoNotCount) {
    TinyGguf tiny("qwen3", {}, GGML_TYPE_Q8_0);
    tiny.tensors().push_back({"blk.0.attn_q.bias", GGML_TYPE_F32, {32}});
    EXPECT_EQ(rows_of(tiny), kAnyRows);
}

struct Stored {
    const char* type;
    Repack repack = Repack::off;
    Kernels kernels = Kernels::ggml;
};

Stored packed(const char* type) {
    return {type, Repack::automatic, Kernels::automatic};
}

void PrintTo(const Stored& stored, std::ostream* out) {
    *out << stored.type
         << (stored.kernels == Kernels::automatic ? "/packed"
             : stored.repack == Repack::off       ? ""
                                                  : "/repacked");
}

constexpr int kTokens = 60;

// Passes of `max_rows` rows, then one with the rest.
std::vector<int> passes_of(int max_rows) {
    std::vector<int> passes;
    for (int left = kTokens; left > 0; left -= passes.back()) {
        passes.push_back(std::min(left, max_rows));
    }
    return passes;
}

class ComputedRows : public ::testing::TestWithParam<Stored> {};

// Passes as large as the table allows are bit-identical to single-row passes.
TEST_P(ComputedRows, AreBitIdenticalUpToTheLimit) {
    LoadedModel model(tiny_model("small-llama", GetParam().type), GetParam().repack,
                      /*n_threads=*/1, GetParam().kernels);
    if (GetParam().kernels == Kernels::automatic && !has_fast_matmul()) {
        GTEST_SKIP() << "no kernels of ours on this machine";
    }
    if (GetParam().repack == Repack::on && model.weights->statistics().repacked_types == "off") {
        GTEST_SKIP() << "no repacked layout on this machine";
    }
    const int n_rows = row_invariant_rows(*model.weights);
    ASSERT_GT(n_rows, 1) << "nothing to compare";
    if (GetParam().kernels == Kernels::automatic) {
        EXPECT_EQ(n_rows, kAnyRows);
    }
    const auto tokens = random_tokens(kTokens, model.config.n_vocab, 17);
    ForwardRig together(model, {.capacity = 128});
    ForwardRig alone(model, {.capacity = 128});
    EXPECT_TRUE(together.feed(tokens, passes_of(n_rows)) == alone.feed(tokens, passes_of(1)));
    EXPECT_TRUE(together.cache_bytes() == alone.cache_bytes());
}

INSTANTIATE_TEST_SUITE_P(Types,
                         ComputedRows,
                         ::testing::Values(Stored{"Q8_0"},
                                           Stored{"Q4_1"},
                                           Stored{"Q4_0", Repack::on},
                                           Stored{"Q4_K"},
                                           Stored{"Q6_K"},
                                           Stored{"Q2_K", Repack::on},
                                           Stored{"Q4_K", Repack::on},
                                           packed("Q5_1"),
                                           packed("Q2_K"),
                                           packed("Q3_K"),
                                           packed("IQ4_NL"),
                                           packed("IQ4_XS"),
                                           packed("MXFP4"),
                                           packed("F32")));

}  // namespace
}  // namespace knap::test::row_invariance_table_test
