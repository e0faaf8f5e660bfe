// The tensors of experts: which ones a file must have, their shapes, where they go, and what
// counts.
#include "model/architectures/experts.h"

#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/matmul/matmul.h"
#include "model/packed_weight.h"
#include "model/row_invariance.h"
#include "support/loaded_model.h"
#include "support/tiny_config.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::experts_test {
namespace {

using ::testing::HasSubstr;

// A llama of two layers with 4 experts of 64, of which rows use 2.
TinyGguf tiny_experts(ggml_type type = GGML_TYPE_Q8_0) {
    TinyGguf tiny("llama", {}, type);
    set_u32(tiny, "expert_count", 4);
    set_u32(tiny, "expert_used_count", 2);
    for (const std::string prefix : {"blk.0.", "blk.1."}) {
        for (const char* name : {"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}) {
            tiny.remove_tensor(prefix + name);
        }
        tiny.tensors().push_back({prefix + "ffn_gate_inp.weight", GGML_TYPE_F32, {32, 4}});
        for (const char* name : {"ffn_gate_exps.weight", "ffn_up_exps.weight"}) {
            tiny.tensors().push_back({prefix + name, type, {32, 64, 4}});
        }
        tiny.tensors().push_back({prefix + "ffn_down_exps.weight", type, {64, 32, 4}});
    }
    return tiny;
}

std::string refusal_of(const TinyGguf& tiny) {
    try {
        LoadedModel model(write_tiny(tiny, "experts-refused.gguf"));
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

TEST(ExpertTensors, AreChecked) {
    EXPECT_EQ(refusal_of(tiny_experts()), "accepted");
    TinyGguf missing = tiny_experts();
    missing.remove_tensor("blk.1.ffn_up_exps.weight");
    EXPECT_THAT(refusal_of(missing), HasSubstr("tensor blk.1.ffn_up_exps.weight: expected by "
                                               "architecture llama, found none"));
    TinyGguf fewer = tiny_experts();
    fewer.tensor("blk.0.ffn_down_exps.weight").ne = {64, 32, 3};
    EXPECT_THAT(refusal_of(fewer), HasSubstr("expected shape {64, 32, 4}, found {64, 32, 3}"));
    TinyGguf wider = tiny_experts();
    wider.tensor("blk.0.ffn_gate_inp.weight").ne = {32, 5};
    EXPECT_THAT(refusal_of(wider), HasSubstr("expected shape {32, 4}, found {32, 5}"));
    TinyGguf integers = tiny_experts();
    integers.tensor("blk.0.ffn_gate_exps.weight").type = GGML_TYPE_I32;
    EXPECT_THAT(refusal_of(integers), HasSubstr("expected type F32, F16, BF16 or a quantised one"));
    // A layer has experts or one MLP.
    TinyGguf both = tiny_experts();
    both.tensors().push_back({"blk.0.ffn_gate.weight", GGML_TYPE_Q8_0, {32, 64}});
    EXPECT_THAT(refusal_of(both), HasSubstr("tensor 'blk.0.ffn_gate.weight' is not part of"));
    TinyGguf shared = tiny_experts();
    shared.tensors().push_back({"blk.0.ffn_gate_shexp.weight", GGML_TYPE_Q8_0, {32, 64}});
    EXPECT_THAT(refusal_of(shared), HasSubstr("ffn_gate_shexp.weight' is not part of"));
}

TEST(ExpertTensors, MixtralIsALlamaWithExpertsAndOthersAreDense) {
    const LoadedModel mixtral(tiny_model("tiny-mixtral", "Q8_0"));
    EXPECT_NE(mixtral.weights->tensors().layers[0].expert_gate, nullptr);
    EXPECT_EQ(mixtral.weights->tensors().layers[0].ffn_gate, nullptr);
    const LoadedModel llama(tiny_model("tiny-llama", "Q8_0"));
    EXPECT_EQ(llama.weights->tensors().layers[0].router, nullptr);
    EXPECT_NE(llama.weights->tensors().layers[0].ffn_gate, nullptr);
    const LoadedModel granite(tiny_model("tiny-granitemoe", "Q8_0"));
    EXPECT_EQ(granite.weights->tensors().layers[3].ffn_down->ne[0], 64) << "the shared one";
}

TEST(ExpertTensors, ATokenReadsThoseThatItUses) {
    const LoadedModel model(write_tiny(tiny_experts(), "experts.gguf"));
    const WeightStatistics& statistics = model.weights->statistics();
    const std::int64_t unused = 2 * 3 * 2 * (32 * 64 / 32 * 34);  // of each layer
    const std::int64_t embedding = (24 - 1) * 34;                 // rows but one
    EXPECT_EQ(statistics.total_bytes - statistics.per_token_bytes, unused + embedding);
}

TEST(ExpertTensors, ArePackedOneByOne) {
    if (!has_fast_matmul()) {
        GTEST_SKIP() << "no kernels of ours on this machine";
    }
    const LoadedModel model(write_tiny(tiny_experts(GGML_TYPE_F32), "packed-experts.gguf"),
                            Repack::automatic, 1, Kernels::automatic);
    const LayerWeights& layer = model.weights->tensors().layers[1];
    EXPECT_EQ(layout_of(layer.router), WeightLayout::packed);
    const PackedWeight& packed = *packed_weight(layer.expert_up);
    ASSERT_EQ(packed.n_planes, 4);
    const auto* stored = reinterpret_cast<const float*>(packed.stored);
    for (int expert = 0; expert < packed.n_planes; ++expert) {
        const PackedMatrix matrix = packed.plane(expert);
        const auto* numbers = reinterpret_cast<const float*>(matrix.data);
        for (int row = 0; row < 64; ++row) {
            for (int i = 0; i < 32; ++i) {
                ASSERT_EQ(numbers[(row / kGroupRows * 32 + i) * kGroupRows + row % kGroupRows],
                          stored[(expert * 64 + row) * 32 + i]);
            }
        }
    }
}

TEST(ExpertTensors, GateAndUpTakeTheSameRowsOrAreNotPacked) {
    TinyGguf tiny = tiny_experts();
    tiny.tensor("blk.0.ffn_up_exps.weight").type = GGML_TYPE_F16;
    tiny.tensor("blk.1.ffn_down_exps.weight").type = GGML_TYPE_F16;
    const LoadedModel model(write_tiny(tiny, "uneven-experts.gguf"), Repack::automatic, 1,
                            Kernels::automatic);
    const ModelTensors& tensors = model.weights->tensors();
    for (ggml_tensor* matrix : expert_matrices(tensors.layers[0])) {
        EXPECT_EQ(layout_of(matrix), WeightLayout::plain);
    }
    const WeightLayout usual = has_fast_matmul() ? WeightLayout::packed : WeightLayout::plain;
    for (ggml_tensor* matrix : expert_matrices(tensors.layers[1])) {
        EXPECT_EQ(layout_of(matrix), usual);
    }
}

// One of the three has a type without a layout of ours: ggml multiplies by all of them.
TEST(ExpertTensors, ArePackedTogetherOrNotAtAll) {
    TinyGguf tiny("llama", {.n_embd = 256, .n_ff = 256}, GGML_TYPE_Q8_0);
    set_u32(tiny, "expert_count", 4);
    set_u32(tiny, "expert_used_count", 1);
    for (const std::string prefix : {"blk.0.", "blk.1."}) {
        for (const char* name : {"ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"}) {
            tiny.remove_tensor(prefix + name);
        }
        tiny.tensors().push_back({prefix + "ffn_gate_inp.weight", GGML_TYPE_F32, {256, 4}});
        for (const char* name : {"ffn_gate_exps.weight", "ffn_up_exps.weight"}) {
            tiny.tensors().push_back({prefix + name, GGML_TYPE_Q8_0, {256, 256, 4}});
        }
        const bool is_odd = prefix == "blk.1.";
        tiny.tensors().push_back({prefix + "ffn_down_exps.weight",
                                  is_odd ? GGML_TYPE_TQ2_0 : GGML_TYPE_Q8_0,
                                  {256, 256, 4}});
    }
    if (!has_fast_matmul()) {
        GTEST_SKIP() << "no kernels of ours on this machine";
    }
    const LoadedModel model(write_tiny(tiny, "mixed-experts.gguf"), Repack::automatic, 1,
                            Kernels::automatic);
    const ModelTensors& tensors = model.weights->tensors();
    for (ggml_tensor* matrix : expert_matrices(tensors.layers[0])) {
        EXPECT_EQ(layout_of(matrix), WeightLayout::packed);
    }
    for (ggml_tensor* matrix : expert_matrices(tensors.layers[1])) {
        EXPECT_EQ(layout_of(matrix), WeightLayout::plain);
    }
    EXPECT_EQ(layout_of(tensors.layers[1].router), WeightLayout::packed);
}

}  // namespace
}  // namespace knap::test::experts_test
