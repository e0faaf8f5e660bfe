// The tensors of every architecture: a file without one of them, or with one of another shape, is
// refused with its name.
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/gguf_variant.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"
#include "tools/make_model/shapes.h"

namespace knap::test::tensors_test {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const GgufVariant& variant) {
    try {
        LoadedModel model(variant.write("other-tensors"));
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

// What files may lack: a head is then tied to the embedding.
std::set<std::string> optional_tensors(std::string_view architecture) {
    if (architecture == "gpt-oss" || architecture == "olmo2") {
        return {};
    }
    std::set<std::string> names{"output.weight"};
    if (architecture == "phi3") {
        names.insert({"rope_factors_short.weight", "rope_factors_long.weight"});
    }
    for (const char* with_biases : {"qwen2", "glm4", "seed_oss"}) {
        if (architecture == with_biases) {
            names.insert({"blk.1.attn_q.bias", "blk.1.attn_k.bias", "blk.1.attn_v.bias"});
        }
    }
    return names;
}

// All tensors that the model has once, and those of one layer.
std::vector<std::string> tensors_to_try(const GgufVariant& variant) {
    std::vector<std::string> names = variant.names();
    std::erase_if(names, [](const std::string& name) {
        return name.starts_with("blk.") && !name.starts_with("blk.1.");
    });
    return names;
}

class Tensors : public ::testing::TestWithParam<const char*> {
  protected:
    std::filesystem::path stored_ = tiny_model(GetParam(), "F32");
    std::string architecture_{find_shape(GetParam()).architecture};
};

TEST_P(Tensors, ThatAreMissingAreNamed) {
    for (const std::string& name : tensors_to_try(GgufVariant(stored_))) {
        GgufVariant variant(stored_);
        variant.remove(name);
        const std::string refusal = refusal_of(variant);
        if (optional_tensors(architecture_).contains(name)) {
            EXPECT_EQ(refusal, "accepted") << name;
            continue;
        }
        // Those of a fused tensor are named one by one.
        const std::string part =
            name == "blk.1.attn_qkv.weight"                            ? "blk.1.attn_q.weight"
            : name == "blk.1.ffn_up.weight" && architecture_ == "phi3" ? "blk.1.ffn_gate.weight"
            : name == "blk.1.ffn_up.weight" && architecture_ == "glm4" ? "blk.1.ffn_gate.weight"
                                                                       : name;
        EXPECT_THAT(refusal, HasSubstr("tensor " + part + ": expected by architecture " +
                                       architecture_ + ", found none"));
    }
}

TEST_P(Tensors, OfAnotherShapeAreNamed) {
    for (const std::string& name : tensors_to_try(GgufVariant(stored_))) {
        GgufVariant variant(stored_);
        variant.narrow(name);
        // The file says how many tokens there are, also by the size of its embedding.
        EXPECT_THAT(refusal_of(variant), HasSubstr("tensor " + name + ": expected shape {"));
    }
}

TEST_P(Tensors, OfNoUseAreNamed) {
    GgufVariant variant(stored_);
    variant.add_f32("blk.1.attn_rotation.weight", std::vector<float>(16));
    EXPECT_THAT(refusal_of(variant), HasSubstr("tensor 'blk.1.attn_rotation.weight' is not part of "
                                               "architecture " +
                                               architecture_));
    // libllama ignores this one in ERNIE 4.5, and would compute another model.
    const std::set<std::string> with_output_bias{"llama", "mistral3", "granite", "granitemoe",
                                                 "gpt-oss"};
    if (!with_output_bias.contains(architecture_)) {
        GgufVariant biased(stored_);
        biased.add_f32("blk.1.attn_output.bias", std::vector<float>(64));
        EXPECT_THAT(refusal_of(biased), HasSubstr("'blk.1.attn_output.bias' is not part of"));
    }
}

// libllama does not read these, or does not add them.
TEST(FusedTensors, HaveAllBiasesOrNone) {
    const auto stored = tiny_model("tiny-llama", "F32");
    GgufVariant apart(stored);
    apart.add_f32("blk.1.attn_qkv.bias", std::vector<float>(64 + 2 * 32));
    EXPECT_THAT(refusal_of(apart), HasSubstr("tensor blk.1.attn_qkv.bias: expected "
                                             "blk.1.attn_qkv.weight beside it, found none"));
    GgufVariant fused(stored);
    for (const char* name : {"blk.1.attn_q.weight", "blk.1.attn_k.weight", "blk.1.attn_v.weight"}) {
        fused.remove(name);
    }
    fused.add_f32("blk.1.attn_qkv.weight", std::vector<float>(64 * (64 + 2 * 32)), 64);
    EXPECT_EQ(refusal_of(fused), "accepted");
    fused.add_f32("blk.1.attn_k.bias", std::vector<float>(32));
    EXPECT_THAT(refusal_of(fused), HasSubstr("tensor blk.1.attn_k.bias: expected "
                                             "blk.1.attn_q.bias beside it, found none"));
    fused.add_f32("blk.1.attn_q.bias", std::vector<float>(64));
    EXPECT_THAT(refusal_of(fused), HasSubstr("expected blk.1.attn_v.bias beside it, found none"));
    fused.add_f32("blk.1.attn_v.bias", std::vector<float>(32));
    EXPECT_EQ(refusal_of(fused), "accepted");
    fused.add_f32("blk.1.attn_qkv.bias", std::vector<float>(64 + 2 * 32));
    EXPECT_THAT(refusal_of(fused), HasSubstr("tensor 'blk.1.attn_k.bias' is not part of"));
}

TEST(FusedTensors, OfAnotherShapeAreNamed) {
    GgufVariant fused(tiny_model("tiny-llama", "F32"));
    for (const char* name : {"blk.1.attn_q.weight", "blk.1.attn_k.weight", "blk.1.attn_v.weight"}) {
        fused.remove(name);
    }
    fused.add_f32("blk.1.attn_qkv.weight", std::vector<float>(64 * (64 + 2 * 32)), 64);
    fused.add_f32("blk.1.attn_qkv.bias", std::vector<float>(64));
    EXPECT_THAT(refusal_of(fused),
                HasSubstr("tensor blk.1.attn_qkv.bias: expected shape {128}, found {64}"));
}

INSTANTIATE_TEST_SUITE_P(Architectures,
                         Tensors,
                         ::testing::ValuesIn(shapes_named("tiny-")),
                         name_of_shape);

TEST(PredictLayers, MayHaveAnyTensors) {
    GgufVariant variant(tiny_model("tiny-exaone4", "F32"));
    gguf_set_val_u32(variant.metadata(), variant.key("nextn_predict_layers").c_str(), 1);
    variant.add_f32("blk.3.nextn.enorm.weight", std::vector<float>(64));
    EXPECT_EQ(refusal_of(variant), "accepted");
    variant.add_f32("blk.4.nextn.enorm.weight", std::vector<float>(64));
    EXPECT_THAT(refusal_of(variant), HasSubstr("'blk.4.nextn.enorm.weight' is not part of"));
}

}  // namespace
}  // namespace knap::test::tensors_test
