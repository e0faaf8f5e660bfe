#include "model/adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/backend.h"
#include "kernels/matmul/matmul.h"
#include "model/packed_weight.h"
#include "support/gguf_edit.h"
#include "support/loaded_model.h"
#include "support/tiny_adapter.h"
#include "support/tiny_model.h"

namespace knap::test::adapter_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A model of 4 layers and 64 channels.
LoadedModel& model() {
    static LoadedModel loaded(tiny_model("tiny-llama", "Q8_0"));
    return loaded;
}

Adapter load(const std::filesystem::path& path, const WeightOptions& options = {}) {
    return {path, model().config, *model().weights, model().backend, options};
}

// The error that loading the file throws, or "accepted".
std::string refusal_of(const std::filesystem::path& path) {
    try {
        load(path);
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

std::string refusal_of(const TinyGguf& file) {
    return refusal_of(write_tiny(file, "bad-adapter.gguf"));
}

TEST(Adapter, IsAModelOfOneLayerThatEndsInTheModelsHead) {
    const Adapter adapter = load(write_tiny(tiny_adapter({.exit_layer = 3}), "adapter.gguf"));
    const ModelTensors& of_model = model().weights->tensors();
    EXPECT_EQ(adapter.exit_layer(), 3);
    EXPECT_EQ(adapter.config().n_layers, 1);
    EXPECT_EQ(adapter.config().n_embd, 64);
    EXPECT_EQ(adapter.config().n_heads, 4);
    EXPECT_EQ(adapter.config().n_kv_heads, 4);
    EXPECT_EQ(adapter.config().head_dim, 16);
    EXPECT_EQ(adapter.config().n_vocab, model().config.n_vocab);
    EXPECT_EQ(adapter.config().rope.pairing, RopePairing::halves);
    EXPECT_EQ(adapter.tensors().output, of_model.output);
    EXPECT_EQ(adapter.tensors().token_embd, of_model.token_embd);
    EXPECT_NE(adapter.tensors().output_norm, of_model.output_norm);
    ASSERT_EQ(adapter.tensors().layers.size(), 1u);
    EXPECT_NE(adapter.tensors().layers[0].wo, nullptr);
    EXPECT_EQ(adapter.tensors().layers[0].ffn_down, nullptr);
    EXPECT_EQ(adapter.n_parameters(), 4 * 64 * 64 + 2 * 64);
    EXPECT_EQ(adapter.n_bytes(), 4 * 64 * 64 / 32 * 34 + 2 * 64 * 4)
        << "Q8_0 matrices and F32 norms";
}

TEST(Adapter, SharesTheBiasOfTheModelsHead) {
    TinyGguf with_bias("qwen2", {}, GGML_TYPE_Q8_0);
    with_bias.tensors().push_back({"output.bias", GGML_TYPE_F32, {with_bias.sizes().n_vocab}});
    LoadedModel biased(write_tiny(with_bias, "biased.gguf"));
    const Adapter adapter(
        write_tiny(tiny_adapter({.exit_layer = 1, .n_embd = 32, .n_heads = 2}), "adapter-32.gguf"),
        biased.config, *biased.weights, biased.backend, {});
    ASSERT_NE(adapter.tensors().output_b, nullptr);
    EXPECT_EQ(adapter.tensors().output_b, biased.weights->tensors().output_b);
}

TEST(Adapter, IsPackedLikeTheModel) {
    if (!has_fast_matmul()) {
        GTEST_SKIP() << "our kernels do not run on this machine";
    }
    const auto path = write_tiny(tiny_adapter(), "adapter-packed.gguf");
    const Adapter packed = load(path);
    const Adapter plain = load(path, {.repack = Repack::off, .kernels = Kernels::ggml});
    EXPECT_NE(packed_weight(packed.tensors().layers[0].wq), nullptr);
    EXPECT_EQ(packed_weight(plain.tensors().layers[0].wq), nullptr);
}

struct BadField {
    const char* field;
    std::uint32_t value;
    const char* complaint;
};

TEST(Adapter, FieldsThatDoNotFitTheModelAreRefused) {
    const BadField all[] = {
        {"format", 2, "key kangaroo.format: expected 1, found 2"},
        {"exit_layer", 0, "key kangaroo.exit_layer: expected 1 to 3, found 0"},
        {"exit_layer", 4, "key kangaroo.exit_layer: expected 1 to 3, found 4"},
        {"exit_layer", ~0u, "key kangaroo.exit_layer: expected 1 to 3, found 4294967295"},
        {"block_count", 2, "key kangaroo.block_count: expected 1, found 2"},
        {"attention.head_count", 128, "key kangaroo.attention.key_length: expected an even number"},
        {"attention.head_count_kv", 2,
         "key kangaroo.attention.head_count_kv: expected 4, one per head, found 2"},
        {"attention.key_length", 32,
         "key kangaroo.attention.head_count: expected heads that divide the embedding of 64, found "
         "4 of 32"},
        {"rope.dimension_count", 8,
         "key kangaroo.rope.dimension_count: expected the head size, 16, found 8"},
        {"context_length", 0, "key kangaroo.context_length: expected 1 to"},
    };
    for (const BadField& bad : all) {
        TinyGguf file = tiny_adapter();
        gguf_set_val_u32(file.metadata(), file.key(bad.field).c_str(), bad.value);
        if (bad.field == std::string_view("attention.head_count")) {
            gguf_remove_key(file.metadata(), file.key("attention.head_count_kv").c_str());
        }
        if (bad.field == std::string_view("attention.key_length")) {
            gguf_set_val_u32(file.metadata(), file.key("attention.value_length").c_str(),
                             bad.value);
            gguf_remove_key(file.metadata(), file.key("rope.dimension_count").c_str());
        }
        EXPECT_THAT(refusal_of(file), HasSubstr(bad.complaint)) << bad.field;
    }
}

TEST(Adapter, OfAnotherModelIsRefused) {
    EXPECT_THAT(refusal_of(tiny_adapter({.n_embd = 96})),
                HasSubstr("key kangaroo.embedding_length: expected the model's 64, found 96"));
}

TEST(Adapter, HeadsThatDoNotDivideTheEmbeddingAreRefused) {
    EXPECT_THAT(refusal_of(tiny_adapter({.n_heads = 5})),
                HasSubstr("key kangaroo.attention.head_count: expected heads that divide the "
                          "embedding of 64, found 5 of 12"));
}

TEST(Adapter, MissingFieldsAreRefused) {
    for (const char* field : {"exit_layer", "block_count", "context_length", "embedding_length",
                              "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
        TinyGguf file = tiny_adapter();
        gguf_remove_key(file.metadata(), file.key(field).c_str());
        EXPECT_THAT(refusal_of(file), HasSubstr(file.key(field) + ": expected")) << field;
    }
}

TEST(Adapter, OfAnotherArchitectureIsRefused) {
    EXPECT_THAT(refusal_of(tiny_model()),
                HasSubstr("key general.architecture: expected kangaroo (an adapter), found "
                          "'llama'"));
    TinyGguf file = tiny_adapter();
    gguf_remove_key(file.metadata(), "general.architecture");
    EXPECT_THAT(refusal_of(file), HasSubstr("found no such key"));
}

TEST(Adapter, TensorsAreThoseOfOneAttentionAndANorm) {
    const std::vector<TinyTensor> needed = tiny_adapter().tensors();
    for (const TinyTensor& tensor : needed) {
        TinyGguf file = tiny_adapter();
        file.remove_tensor(tensor.name);
        EXPECT_THAT(refusal_of(file), HasSubstr("tensor " + tensor.name +
                                                ": expected by architecture kangaroo, found none"));
    }
    for (const char* name :
         {"blk.0.ffn_up.weight", "blk.1.attn_q.weight", "output.weight", "blk.0.attn_q.bias"}) {
        TinyGguf file = tiny_adapter();
        file.tensors().push_back({name, GGML_TYPE_F32, {64}});
        EXPECT_THAT(refusal_of(file), HasSubstr("tensor '" + std::string(name) +
                                                "' is not part of architecture kangaroo"));
    }
}

TEST(Adapter, TensorsOfOtherShapesOrTypesAreRefused) {
    TinyGguf wide = tiny_adapter();
    wide.tensor("blk.0.attn_v.weight") = {"blk.0.attn_v.weight", GGML_TYPE_Q8_0, {64, 96}};
    EXPECT_THAT(refusal_of(wide),
                HasSubstr("tensor blk.0.attn_v.weight: expected shape {64, 64}, found {64, 96}"));
    TinyGguf half_norm = tiny_adapter();
    half_norm.tensor("output_norm.weight") = {"output_norm.weight", GGML_TYPE_F16, {64}};
    EXPECT_THAT(refusal_of(half_norm),
                HasSubstr("tensor output_norm.weight: expected type F32, found F16"));
    TinyGguf integers = tiny_adapter();
    integers.tensor("blk.0.attn_q.weight") = {"blk.0.attn_q.weight", GGML_TYPE_I32, {64, 64}};
    EXPECT_THAT(refusal_of(integers), HasSubstr("tensor blk.0.attn_q.weight: expected type F32, "
                                                "F16, BF16 or a quantised one, found I32"));
}

TEST(Adapter, BrokenFilesAreRefusedInOneLineThatNamesThem) {
    const std::vector<std::byte> good = tiny_adapter().bytes();
    ASSERT_EQ(refusal_of(write_bytes("bad-adapter.gguf", good)), "accepted");
    for (std::size_t n = 0; n < good.size(); n += n < 2000 ? 97 : 4999) {
        const std::vector<std::byte> cut(good.begin(),
                                         good.begin() + static_cast<std::ptrdiff_t>(n));
        const std::string refusal = refusal_of(write_bytes("bad-adapter.gguf", cut));
        EXPECT_THAT(refusal, HasSubstr("bad-adapter.gguf: ")) << n;
        EXPECT_THAT(refusal, Not(HasSubstr("\n")));
    }
    // Damage each number of the header.
    for (const GgufField& field : lay_out(good).fields) {
        if (field.size <= 8) {
            const std::string refusal = refusal_of(
                write_bytes("bad-adapter.gguf", with_value(good, field, 0xffff'ffff'ffff'fff7)));
            EXPECT_THAT(refusal, ::testing::AnyOf("accepted", HasSubstr("bad-adapter.gguf: ")))
                << field.where;
            EXPECT_THAT(refusal, Not(HasSubstr("\n")));
        }
    }
    EXPECT_THAT(refusal_of("no/such/adapter.gguf"),
                StartsWith("no/such/adapter.gguf: cannot be opened"));
}

}  // namespace
}  // namespace knap::test::adapter_test
