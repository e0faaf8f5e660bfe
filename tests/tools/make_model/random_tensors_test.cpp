#include "tools/make_model/random_tensors.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "model/architectures/architecture.h"
#include "model/tensor_table.h"

namespace knap::random_tensors_test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<RandomTensor> tensors_of(const ModelShape& shape, const char* type = "F32") {
    return declare_random_tensors(shape, parse_weight_recipe(type, "", shape.has_tied_head));
}

RandomTensor tensor_of(const char* shape, std::string_view name, const char* type = "F32") {
    for (const RandomTensor& tensor : tensors_of(find_shape(shape), type)) {
        if (tensor.name == name) {
            return tensor;
        }
    }
    ADD_FAILURE() << "no tensor " << name;
    return {};
}

// The names of a layer that `table` has and a shape with or without experts may lack or must have.
std::set<std::string> names_in_layer(const TensorTable& table,
                                     Presence presence,
                                     const ExpertShape& experts) {
    std::set<std::string> names;
    for (const TensorSpec<LayerWeights>& spec : table.of_layer) {
        const bool is_there =
            spec.in_layers == InLayers::all ||
            (spec.in_layers == InLayers::with_shared_expert
                 ? experts.n_ff_shared > 0
                 : (spec.in_layers == InLayers::with_experts) == (experts.n_experts > 0));
        if (is_there && spec.presence == presence) {
            names.insert(concat("blk.0.", spec.name));
        }
    }
    return names;
}

// That they have the right sizes, and types that load, is what every test of a model shows.
TEST(RandomTensors, AreAllThatTheArchitectureRequires) {
    for (ModelShape shape : known_shapes()) {
        shape.n_layers = 1;
        const TensorTable& table = find_architecture(shape.architecture)->tensors;
        std::set<std::string> names;
        for (const RandomTensor& tensor : tensors_of(shape)) {
            EXPECT_TRUE(names.insert(tensor.name).second) << shape.name << ", " << tensor.name;
        }
        for (const FusedTensors& fused : table.fused) {
            if (names.contains(concat("blk.0.", fused.name))) {
                for (const std::string_view part : fused.parts) {
                    names.insert(concat("blk.0.", part));
                }
            }
        }
        for (const std::string& name : names_in_layer(table, Presence::required, shape.experts)) {
            EXPECT_TRUE(names.contains(name)) << shape.name << ", " << name;
        }
    }
}

// What files of checkpoints have of what their architecture leaves open.
std::set<std::string> optional_of(const char* name) {
    ModelShape shape = find_shape(name);
    shape.n_layers = 1;
    const TensorTable& table = find_architecture(shape.architecture)->tensors;
    const std::set<std::string> optional = names_in_layer(table, Presence::optional, shape.experts);
    std::set<std::string> names;
    for (const RandomTensor& tensor : tensors_of(shape)) {
        if (optional.contains(tensor.name) || tensor.name.starts_with("output.") ||
            tensor.name.starts_with("rope_")) {
            names.insert(tensor.name);
        }
    }
    return names;
}

TEST(RandomTensors, HaveTheOptionalOnesOfCheckpoints) {
    for (const char* shape : {"tiny-qwen2", "tiny-glm4", "tiny-seed-oss"}) {
        EXPECT_THAT(optional_of(shape),
                    UnorderedElementsAre("output.weight", "blk.0.attn_q.bias", "blk.0.attn_k.bias",
                                         "blk.0.attn_v.bias"))
            << shape;
    }
    for (const char* shape : {"tiny-llama", "tiny-granite", "tiny-granitemoe", "phi-4"}) {
        EXPECT_THAT(optional_of(shape), UnorderedElementsAre("output.weight")) << shape;
    }
    EXPECT_THAT(optional_of("tiny-gemma3"), UnorderedElementsAre());
    EXPECT_THAT(optional_of("llama-3.2-1b"), UnorderedElementsAre("rope_freqs.weight"));
    EXPECT_THAT(optional_of("phi-4-mini"),
                UnorderedElementsAre("rope_factors_long.weight", "rope_factors_short.weight"));
}

TEST(RandomTensors, OfAnUnknownArchitectureAreRefused) {
    ModelShape shape = find_shape("tiny-llama");
    shape.architecture = "mine";
    try {
        tensors_of(shape);
        ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("shape tiny-llama: expected an architecture that knap "
                                            "runs, found mine"));
    }
}

TEST(RandomTensors, OfOneMatrixHaveTheRowsOfAll) {
    const RandomTensor heads = tensor_of("small-phi", "blk.2.attn_qkv.weight", "Q4_K_M");
    EXPECT_EQ(heads.n_in, 256);
    EXPECT_EQ(heads.n_rows, 256 + 2 * 128);
    EXPECT_EQ(heads.type, GGML_TYPE_Q6_K) << "that of values";
    const RandomTensor gates = tensor_of("small-phi", "blk.2.ffn_up.weight", "Q4_K_M");
    EXPECT_EQ(gates.n_rows, 2 * 512);
    EXPECT_EQ(gates.type, GGML_TYPE_Q4_K);
}

TEST(RandomTensors, ValuesAreThoseOfTheirKind) {
    const RandomTensor router = tensor_of("tiny-gpt-oss", "blk.1.ffn_gate_inp.weight", "Q8_0");
    EXPECT_EQ(router.type, GGML_TYPE_F32);
    EXPECT_EQ(router.deviation, 4 / std::sqrt(64.0f)) << "experts are chosen by wide margins";
    EXPECT_EQ(tensor_of("tiny-gpt-oss", "blk.1.attn_sinks.weight").deviation, 1.0f);
    const RandomTensor norm = tensor_of("tiny-olmo2", "blk.1.attn_q_norm.weight");
    EXPECT_EQ(norm.n_in, 64);
    EXPECT_EQ(norm.mean, 1.0f);
    EXPECT_EQ(norm.deviation, 0.1f);
    const RandomTensor bias = tensor_of("tiny-gpt-oss", "blk.1.ffn_up_exps.bias");
    EXPECT_EQ(bias.n_in, 32);
    EXPECT_EQ(bias.n_rows, 8);
    EXPECT_EQ(bias.n_planes, 1);
    EXPECT_EQ(bias.mean, 0.0f);
    EXPECT_EQ(bias.deviation, 0.05f);
    EXPECT_EQ(tensor_of("tiny-phi", "rope_factors_long.weight").values,
              (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(tensor_of("tiny-phi", "rope_factors_short.weight").values,
              (std::vector<float>{1, 1, 1, 1}));
}

}  // namespace
}  // namespace knap::random_tensors_test
