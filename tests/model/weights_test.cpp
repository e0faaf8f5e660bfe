#include "model/weights.h"

#include <cstring>

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/backend.h"
#include "model/gguf/gguf_file.h"
#include "support/gguf_edit.h"
#include "support/loaded_model.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::weights_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

struct Loaded {
    explicit Loaded(const std::filesystem::path& path,
                    Repack repack = Repack::off,
                    Kernels kernels = Kernels::ggml)
        : file(GgufFile::open(path)),
          config(read_config(file)),
          weights(Weights::load(file,
                                config,
                                backend,
                                {.repack = repack, .kernels = kernels},
                                [this](double fraction) { progress.push_back(fraction); })) {}

    bool is_mapped(const ggml_tensor* tensor) const {
        const auto* data = static_cast<const std::byte*>(tensor->data);
        const std::span<const std::byte> bytes = file.mappings()[0];
        return data >= bytes.data() && data < bytes.data() + bytes.size();
    }
    const ModelTensors& tensors() const { return weights->tensors(); }

    Backend backend{1};
    std::vector<double> progress;
    GgufFile file;
    ModelConfig config;
    std::unique_ptr<Weights> weights;
};

std::string refusal_of(const TinyGguf& tiny) {
    try {
        Loaded loaded(write_tiny(tiny, "weights-refused.gguf"));
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Weights, StayInTheMappedFile) {
    const Loaded loaded(write_tiny(TinyGguf(), "mapped.gguf"));
    const ModelTensors& tensors = loaded.tensors();
    ASSERT_EQ(tensors.layers.size(), 2u);
    for (const ggml_tensor* tensor :
         {tensors.token_embd, tensors.output_norm, tensors.output, tensors.layers[0].attn_norm,
          tensors.layers[0].wq, tensors.layers[1].wk, tensors.layers[1].wv, tensors.layers[1].wo,
          tensors.layers[1].ffn_norm, tensors.layers[1].ffn_gate, tensors.layers[1].ffn_up,
          tensors.layers[1].ffn_down}) {
        ASSERT_NE(tensor, nullptr);
        EXPECT_TRUE(loaded.is_mapped(tensor)) << tensor->name;
        EXPECT_EQ(tensor->data, loaded.file.find(tensor->name)->data) << tensor->name;
        EXPECT_EQ(ggml_backend_buffer_get_usage(tensor->buffer), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    EXPECT_STREQ(tensors.layers[1].ffn_up->name, "blk.1.ffn_up.weight");
    EXPECT_EQ(tensors.layers[0].wk->ne[1], 16);
    EXPECT_EQ(tensors.layers[0].bq, nullptr);
    EXPECT_EQ(tensors.layers[0].q_norm, nullptr);
    EXPECT_EQ(tensors.rope_freqs, nullptr);
    EXPECT_THAT(loaded.progress, ElementsAre(1.0));
}

TEST(Weights, OptionalTensorsFindTheirPlaces) {
    TinyGguf llama;
    llama.tensors().push_back({"rope_freqs.weight", GGML_TYPE_F32, {4}});
    llama.tensors().push_back({"blk.0.attn_q.bias", GGML_TYPE_F32, {32}});
    llama.tensors().push_back({"blk.0.attn_output.bias", GGML_TYPE_F32, {32}});
    llama.tensors().push_back({"blk.1.ffn_gate.bias", GGML_TYPE_F32, {64}});
    const Loaded loaded(write_tiny(llama, "llama-optional.gguf"));
    EXPECT_NE(loaded.tensors().rope_freqs, nullptr);
    EXPECT_NE(loaded.tensors().layers[0].bq, nullptr);
    EXPECT_NE(loaded.tensors().layers[0].bo, nullptr);
    EXPECT_NE(loaded.tensors().layers[1].ffn_gate_b, nullptr);
    EXPECT_EQ(loaded.tensors().layers[1].bq, nullptr);

    TinyGguf qwen2("qwen2");
    qwen2.tensors().push_back({"output.bias", GGML_TYPE_F32, {24}});
    qwen2.tensors().push_back({"blk.1.attn_v.bias", GGML_TYPE_F32, {16}});
    const Loaded with_bias(write_tiny(qwen2, "qwen2-optional.gguf"));
    EXPECT_NE(with_bias.tensors().output_b, nullptr);
    EXPECT_NE(with_bias.tensors().layers[1].bv, nullptr);

    const Loaded qwen3(write_tiny(TinyGguf("qwen3"), "qwen3.gguf"));
    EXPECT_NE(qwen3.tensors().layers[1].q_norm, nullptr);
    EXPECT_NE(qwen3.tensors().layers[1].k_norm, nullptr);
}

TEST(Weights, EveryDeviceHasTheDivisorsAndTheLastOneATiedHead) {
    TinyGguf tiny;
    tiny.remove_tensor("output.weight");
    tiny.tensors().push_back({"rope_freqs.weight", GGML_TYPE_F32, {4}});
    const auto path = write_tiny(tiny, "two-devices.gguf");
    const LoadedModel model(path, Repack::off, 1, Kernels::ggml, nullptr, {1, 1});
    const ModelTensors& tensors = model.weights->tensors();
    ASSERT_NE(tensors.layers[0].rope_freqs, nullptr);
    ASSERT_NE(tensors.layers[1].rope_freqs, nullptr);
    EXPECT_NE(tensors.layers[0].rope_freqs, tensors.layers[1].rope_freqs);
    EXPECT_EQ(tensors.rope_freqs, tensors.layers[0].rope_freqs);
    EXPECT_NE(tensors.output, tensors.token_embd);
    EXPECT_NE(tensors.output->buffer, tensors.token_embd->buffer);
    EXPECT_TRUE(HeadSubset::is_possible(*model.weights));
    const LoadedModel whole(path);
    EXPECT_EQ(whole.weights->tensors().layers[1].rope_freqs, whole.weights->tensors().rope_freqs);
    EXPECT_EQ(whole.weights->tensors().output, whole.weights->tensors().token_embd);
}

TEST(Weights, TiedHeadIsTheEmbedding) {
    TinyGguf tiny;
    tiny.remove_tensor("output.weight");
    const Loaded loaded(write_tiny(tiny, "tied.gguf"));
    EXPECT_EQ(loaded.tensors().output, loaded.tensors().token_embd);
    EXPECT_TRUE(loaded.weights->statistics().has_tied_head);
}

TEST(Weights, StatisticsAddUp) {
    TinyGguf tiny("llama", {.n_layers = 1}, GGML_TYPE_Q8_0);
    // Elements: embedding and head have 32 * 24 each, q and o 32 * 32, k and v 32 * 16, and the MLP
    // three times 32 * 64.
    const std::int64_t in_layer = 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 64;
    const auto q8_bytes = [](std::int64_t n) { return n / 32 * 34; };
    const std::int64_t norm_bytes = 3 * 32 * 4;
    {
        const Loaded loaded(write_tiny(tiny, "statistics.gguf"));
        const WeightStatistics& statistics = loaded.weights->statistics();
        EXPECT_EQ(statistics.n_parameters, 2 * 32 * 24 + in_layer + 3 * 32);
        EXPECT_EQ(statistics.total_bytes, q8_bytes(2 * 32 * 24 + in_layer) + norm_bytes);
        EXPECT_EQ(statistics.per_token_bytes, q8_bytes(32 + 32 * 24 + in_layer) + norm_bytes);
        EXPECT_EQ(statistics.repacked_types, "off");
        EXPECT_EQ(statistics.packed_types, "off");
        EXPECT_FALSE(statistics.has_tied_head);
        EXPECT_THAT(statistics.types, ElementsAre(Pair("Q8_0", 9), Pair("F32", 3)));
    }
    tiny.remove_tensor("output.weight");
    const Loaded tied(write_tiny(tiny, "statistics-tied.gguf"));
    const WeightStatistics& statistics = tied.weights->statistics();
    EXPECT_EQ(statistics.total_bytes, q8_bytes(32 * 24 + in_layer) + norm_bytes);
    EXPECT_EQ(statistics.per_token_bytes, q8_bytes(32 + 32 * 24 + in_layer) + norm_bytes);
}

TEST(Weights, LessAlignedFilesAreCopied) {
    TinyGguf tiny;
    gguf_set_val_u32(tiny.metadata(), "general.alignment", 8);
    std::vector<std::byte> bytes;
    GgufLayout layout;
    std::string filler;  // grows until the data starts where the device cannot use it
    do {
        filler += "x";
        gguf_set_val_str(tiny.metadata(), "test.filler", filler.c_str());
        bytes = tiny.bytes();
        layout = lay_out(bytes);
    } while (GGML_PAD(layout.header_end, 8) % 32 == 0);
    bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(GGML_PAD(layout.header_end, 8)),
                bytes.begin() + static_cast<std::ptrdiff_t>(layout.data_begin));

    const Loaded loaded(write_bytes("unaligned.gguf", bytes));
    const ggml_tensor* tensor = loaded.tensors().layers[1].wo;
    EXPECT_FALSE(loaded.is_mapped(tensor));
    const TensorInfo* info = loaded.file.find("blk.1.attn_output.weight");
    EXPECT_EQ(std::memcmp(tensor->data, info->data, info->n_bytes), 0);
    EXPECT_EQ(loaded.weights->statistics().repacked_types, "off");
    EXPECT_EQ(loaded.progress.back(), 1.0);
    EXPECT_GT(loaded.progress.size(), 1u);
}

// Whether ggml has a repacked layout for a type on this machine.
bool has_layout(ggml_type type) {
    const TinyGguf tiny("llama", {.n_embd = 256, .n_ff = 256}, type);
    return Loaded(write_tiny(tiny, "layout.gguf"), Repack::on)
               .weights->statistics()
               .repacked_types != "off";
}

TEST(Weights, AutomaticRepackingTakesOnlyBatchInvariantTypes) {
    if (!has_layout(GGML_TYPE_Q4_0) || !has_layout(GGML_TYPE_Q4_K)) {
        GTEST_SKIP() << "no repacked layouts on this machine";
    }
    const TinySizes sizes{.n_embd = 256, .n_ff = 256};
    const auto repacked = [&](ggml_type type, Repack repack) {
        const Loaded loaded(write_tiny(TinyGguf("llama", sizes, type), "repack.gguf"), repack);
        return loaded.weights->statistics().repacked_types;
    };
    EXPECT_EQ(repacked(GGML_TYPE_Q4_0, Repack::automatic), "Q4_0");
    EXPECT_EQ(repacked(GGML_TYPE_Q4_K, Repack::automatic), "off");
    EXPECT_EQ(repacked(GGML_TYPE_Q4_0, Repack::off), "off");
    EXPECT_EQ(repacked(GGML_TYPE_Q4_K, Repack::on), "Q4_K");
    EXPECT_EQ(repacked(GGML_TYPE_F32, Repack::on), "off");
}

TEST(Weights, EmbeddingStaysMappedWhenTheTiedHeadIsRepacked) {
    if (!has_layout(GGML_TYPE_Q4_0)) {
        GTEST_SKIP() << "no repacked layouts on this machine";
    }
    TinyGguf tiny("llama", {}, GGML_TYPE_Q4_0);
    tiny.remove_tensor("output.weight");
    const Loaded loaded(write_tiny(tiny, "repack-tied.gguf"), Repack::automatic);
    EXPECT_TRUE(loaded.is_mapped(loaded.tensors().token_embd));
    EXPECT_FALSE(loaded.is_mapped(loaded.tensors().output));
    for (const LayerWeights& layer : loaded.tensors().layers) {
        for (const ggml_tensor* matrix : matrices(layer)) {
            EXPECT_FALSE(loaded.is_mapped(matrix)) << matrix->name;
        }
        EXPECT_TRUE(loaded.is_mapped(layer.ffn_norm));
    }
    EXPECT_EQ(loaded.weights->statistics().repacked_types, "Q4_0");
}

// The product of `weight` and n_rows rows of input, [n_out * n_rows].
std::vector<float> multiply(Loaded& loaded, ggml_tensor* weight, const std::vector<float>& input) {
    const std::int64_t n_in = weight->ne[0];
    const ggml_context_ptr context(
        ggml_init({16 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
    ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, n_in,
                                        static_cast<std::int64_t>(input.size()) / n_in);
    ggml_tensor* y = ggml_mul_mat(context.get(), weight, x);
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_build_forward_expand(graph, y);
    const ggml_backend_buffer_ptr buffer(
        ggml_backend_alloc_ctx_tensors_from_buft(context.get(), loaded.backend.buffer_type()));
    ggml_backend_tensor_set(x, input.data(), 0, input.size() * sizeof(float));
    EXPECT_TRUE(loaded.backend.compute(graph));
    std::vector<float> output(static_cast<std::size_t>(ggml_nelements(y)));
    ggml_backend_tensor_get(y, output.data(), 0, output.size() * sizeof(float));
    return output;
}

TEST(Weights, AutomaticallyRepackedMatricesAreBatchInvariant) {
    const TinyGguf tiny("llama", {.n_embd = 256, .n_ff = 512}, GGML_TYPE_Q4_0);
    Loaded loaded(write_tiny(tiny, "invariant.gguf"), Repack::automatic);
    ggml_tensor* weight = loaded.tensors().layers[0].ffn_up;
    std::vector<float> rows(33 * 256);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = std::sin(static_cast<float>(i * i % 1009));
    }
    std::vector<float> one_by_one;
    for (std::size_t row = 0; row < 33; ++row) {
        const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(row * 256);
        const std::vector<float> output = multiply(loaded, weight, {begin, begin + 256});
        one_by_one.insert(one_by_one.end(), output.begin(), output.end());
    }
    for (std::size_t n = 2; n <= 33; ++n) {
        const std::vector<float> together = multiply(
            loaded, weight, {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(n * 256)});
        EXPECT_TRUE(std::equal(together.begin(), together.end(), one_by_one.begin()))
            << n << " rows";
    }
}

TEST(Weights, MissingTensorsAreNamed) {
    for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight",
                             "blk.1.attn_q.weight", "blk.1.ffn_down.weight"}) {
        TinyGguf tiny;
        tiny.remove_tensor(name);
        EXPECT_THAT(refusal_of(tiny), HasSubstr(std::string("tensor ") + name +
                                                ": expected by architecture llama, found none"));
    }
    TinyGguf qwen3("qwen3");
    qwen3.remove_tensor("blk.0.attn_k_norm.weight");
    EXPECT_THAT(refusal_of(qwen3), HasSubstr("tensor blk.0.attn_k_norm.weight: expected"));
}

TEST(Weights, MisshapenTensorsAreNamed) {
    TinyGguf tiny;
    tiny.tensor("blk.1.attn_k.weight").ne = {32, 32};
    EXPECT_THAT(refusal_of(tiny),
                HasSubstr("weights-refused.gguf: tensor blk.1.attn_k.weight: expected "
                          "shape {32, 16}, found {32, 32}"));
    TinyGguf transposed;
    transposed.tensor("blk.0.ffn_down.weight").ne = {32, 64};
    EXPECT_THAT(refusal_of(transposed), HasSubstr("expected shape {64, 32}, found {32, 64}"));
    TinyGguf deep;
    deep.tensor("output_norm.weight").ne = {32, 1, 2};
    EXPECT_THAT(refusal_of(deep), HasSubstr("expected shape {32}, found {32, 1, 2}"));
    TinyGguf vocabulary;
    vocabulary.tensor("token_embd.weight").ne = {32, 25};
    EXPECT_THAT(refusal_of(vocabulary), HasSubstr("expected shape {32, 24}, found {32, 25}"));
}

TEST(Weights, UnusableTypesAreNamed) {
    TinyGguf norm;
    norm.tensor("blk.0.attn_norm.weight").type = GGML_TYPE_F16;
    EXPECT_THAT(refusal_of(norm),
                HasSubstr("tensor blk.0.attn_norm.weight: expected type F32, found F16"));
    TinyGguf integer;
    integer.tensor("blk.0.attn_q.weight").type = GGML_TYPE_I32;
    EXPECT_THAT(refusal_of(integer),
                HasSubstr("tensor blk.0.attn_q.weight: expected type F32, F16, "
                          "BF16 or a quantised one, found I32"));
}

TEST(Weights, TensorsOfOtherModelsAreRefused) {
    TinyGguf scaled;
    scaled.tensors().push_back({"blk.0.attn_q.scale", GGML_TYPE_F32, {1}});
    EXPECT_THAT(refusal_of(scaled), HasSubstr("tensor 'blk.0.attn_q.scale' is not part of "
                                              "architecture llama with 2 layers"));
    TinyGguf longer;
    gguf_set_val_u32(longer.metadata(), "llama.block_count", 1);
    EXPECT_THAT(refusal_of(longer), HasSubstr("tensor 'blk.1.attn_norm.weight' is not part of"));
}

class WeightTypes : public ::testing::TestWithParam<ggml_type> {};

TEST_P(WeightTypes, Load) {
    const TinyGguf tiny("llama", {.n_embd = 256, .n_ff = 256}, GetParam());
    for (const Repack repack : {Repack::off, Repack::on}) {
        const Loaded loaded(write_tiny(tiny, "types.gguf"), repack);
        EXPECT_EQ(loaded.tensors().token_embd->type, GetParam());
        EXPECT_EQ(loaded.tensors().layers[1].wo->type, GetParam());
    }
}

INSTANTIATE_TEST_SUITE_P(All,
                         WeightTypes,
                         ::testing::Values(GGML_TYPE_F32,
                                           GGML_TYPE_F16,
                                           GGML_TYPE_BF16,
                                           GGML_TYPE_Q8_0,
                                           GGML_TYPE_Q4_0,
                                           GGML_TYPE_Q4_1,
                                           GGML_TYPE_Q5_0,
                                           GGML_TYPE_Q5_1,
                                           GGML_TYPE_Q2_K,
                                           GGML_TYPE_Q3_K,
                                           GGML_TYPE_Q4_K,
                                           GGML_TYPE_Q5_K,
                                           GGML_TYPE_Q6_K,
                                           GGML_TYPE_IQ4_NL,
                                           GGML_TYPE_MXFP4),
                         [](const auto& type) { return std::string(ggml_type_name(type.param)); });

}  // namespace
}  // namespace knap::test::weights_test
