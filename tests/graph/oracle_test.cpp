// Our logits compared with libllama's, over a prompt and 32 decoded tokens, for random models of
// every architecture.
#include <array>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/matmul/matmul.h"
#include "model/row_invariance.h"
#include "support/gguf_variant.h"
#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/reference_forward.h"
#include "support/tiny_model.h"
#include "tools/peer/llama_peer.h"

namespace knap::test::oracle_test {
namespace {

constexpr int kPrompt = 40;
constexpr int kDecoded = 32;

struct OracleCase {
    const char* shape;
    const char* type;
};

void PrintTo(const OracleCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type;
}

class Oracle : public ::testing::TestWithParam<OracleCase> {
  protected:
    Oracle()
        : path_(tiny_model(GetParam().shape, GetParam().type)),
          oracle_(path_),
          model_(path_),
          prompt_(random_tokens(kPrompt, model_.config.n_vocab, 7)) {}

    // Logits of the prompt's rows and of 32 tokens decoded after it one at a time, each libllama's
    // own choice.
    void run_oracle() {
        feed_oracle(prompt_);
        for (int i = 0; i < kDecoded; ++i) {
            decoded_.push_back(argmax(expected_.back()));
            feed_oracle(std::span(&decoded_.back(), 1));
        }
    }

    void feed_oracle(std::span<const Token> tokens) {
        for (const auto row : oracle_.feed(tokens, LlamaPeer::Logits::every_row)) {
            expected_.emplace_back(row.begin(), row.end());
        }
    }

    template <typename Feed>
    std::vector<std::vector<float>> run(Feed feed) {
        auto rows = feed(std::span<const Token>(prompt_));
        for (const Token& token : decoded_) {
            rows.push_back(feed(std::span(&token, 1)).front());
        }
        return rows;
    }

    void expect_close(LoadedModel& model, AttentionPath path, float bound);
    void expect_close(const std::vector<std::vector<float>>& rows, float bound);

    std::filesystem::path path_;
    LlamaPeer oracle_;
    LoadedModel model_;
    std::vector<Token> prompt_;
    std::vector<Token> decoded_;
    std::vector<std::vector<float>> expected_;
};

TEST_P(Oracle, ReferenceIsBitIdenticalToLibllama) {
    run_oracle();
    ReferenceForward reference(model_, 1024);
    const auto rows = run([&](std::span<const Token> tokens) { return reference.feed(tokens); });
    ASSERT_EQ(rows.size(), expected_.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i], expected_[i]) << "row " << i;
    }
}

// How far logits (spread about 1) may be from libllama's. The folded attention sums in another
// order; with quantised weights, activations are rounded to 8 bits, and a last-place difference
// becomes a step of that size.
float bound(std::string_view type) {
    return type == "F32" || type == "F16" || type == "BF16" ? 0.05f : 0.25f;
}

TEST_P(Oracle, KernelPathStaysWithinTheBound) {
    expect_close(model_, AttentionPath::kernel, bound(GetParam().type));
}

// libllama rounds the inputs of BF16 products to the eight bits of that type. Ours are not rounded.
TEST_P(Oracle, OurProductsStayWithinTheBound) {
    if (!has_fast_matmul()) {
        GTEST_SKIP() << "no kernels of ours on this machine";
    }
    LoadedModel packed(path_, Repack::automatic, /*n_threads=*/1, Kernels::automatic);
    ASSERT_EQ(layout_of(packed.weights->tensors().layers.front().wq), WeightLayout::packed);
    const std::string_view type = GetParam().type;
    expect_close(packed, AttentionPath::kernel, bound(type == "BF16" ? "Q8_0" : type));
}

TEST_P(Oracle, FoldedPathStaysWithinTheBound) {
    expect_close(model_, AttentionPath::folded, bound(GetParam().type));
}

void Oracle::expect_close(LoadedModel& model, AttentionPath path, float bound) {
    run_oracle();
    ForwardRig rig(model, {.path = path});
    expect_close(run([&](std::span<const Token> tokens) { return rig.feed(tokens); }), bound);
}

// Where layers have experts, rounding may choose another one, in a row or in one that it attends
// to. Router's logits are steep here, so that this is rare.
void Oracle::expect_close(const std::vector<std::vector<float>>& rows, float bound) {
    const bool has_experts = model_.config.n_experts_used() > 0;
    const float limit = has_experts ? 3 * bound : bound;
    ASSERT_EQ(rows.size(), expected_.size());
    std::vector<std::size_t> far;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (max_abs_difference(rows[i], expected_[i]) >= limit) {
            far.push_back(i);
        } else if (argmax(rows[i]) != argmax(expected_[i])) {
            EXPECT_LT(top_two_gap(expected_[i]), 2 * limit) << "row " << i << ": not a near tie";
        }
    }
    EXPECT_LE(far.size(), has_experts ? rows.size() / 10 : 0) << ::testing::PrintToString(far);
}

TEST_P(Oracle, FlashAttentionStaysWithinTheBound) {
    expect_close(model_, AttentionPath::flash, bound(GetParam().type));
}

INSTANTIATE_TEST_SUITE_P(Architectures,
                         Oracle,
                         ::testing::Values(OracleCase{"tiny-llama", "F32"},
                                           OracleCase{"tiny-llama", "F16"},
                                           OracleCase{"tiny-llama", "BF16"},
                                           OracleCase{"tiny-llama", "Q8_0"},
                                           OracleCase{"tiny-llama", "Q4_0"},
                                           OracleCase{"tiny-llama", "Q4_1"},
                                           OracleCase{"tiny-llama", "Q5_0"},
                                           OracleCase{"tiny-llama", "Q5_1"},
                                           OracleCase{"tiny-llama", "IQ4_NL"},
                                           OracleCase{"tiny-llama", "MXFP4"},
                                           OracleCase{"tiny-mha", "F16"},
                                           OracleCase{"tiny-mha", "Q4_1"},
                                           OracleCase{"tiny-qwen2", "F32"},
                                           OracleCase{"tiny-qwen2", "Q8_0"},
                                           OracleCase{"tiny-qwen3", "F32"},
                                           OracleCase{"tiny-qwen3", "Q4_1"},
                                           OracleCase{"small-llama", "Q2_K"},
                                           OracleCase{"small-llama", "Q3_K"},
                                           OracleCase{"small-llama", "Q4_K"},
                                           OracleCase{"small-llama", "Q5_K"},
                                           OracleCase{"small-llama", "Q6_K"},
                                           OracleCase{"small-llama", "IQ4_XS"},
                                           OracleCase{"small-qwen3", "Q4_K"},
                                           OracleCase{"tiny-ernie4.5", "F32"},
                                           OracleCase{"tiny-ernie4.5", "Q8_0"},
                                           OracleCase{"tiny-exaone4", "F32"},
                                           OracleCase{"tiny-exaone4-windows", "F32"},
                                           OracleCase{"small-exaone4", "Q4_K"},
                                           OracleCase{"tiny-gemma2", "F32"},
                                           OracleCase{"tiny-gemma2", "Q8_0"},
                                           OracleCase{"small-gemma2", "Q4_K"},
                                           OracleCase{"tiny-gemma3", "F32"},
                                           OracleCase{"tiny-gemma3", "F16"},
                                           OracleCase{"tiny-gemma3", "Q4_0"},
                                           OracleCase{"small-gemma3", "Q4_K"},
                                           OracleCase{"tiny-glm4", "F32"},
                                           OracleCase{"tiny-glm4", "Q8_0"},
                                           OracleCase{"small-glm4", "Q5_K"},
                                           OracleCase{"tiny-granite", "F32"},
                                           OracleCase{"tiny-granite", "Q4_1"},
                                           OracleCase{"tiny-hunyuan-dense", "F32"},
                                           OracleCase{"tiny-hunyuan-dense", "Q5_1"},
                                           OracleCase{"tiny-mistral3", "F32"},
                                           OracleCase{"tiny-mistral3", "Q4_0"},
                                           OracleCase{"tiny-olmo2", "F32"},
                                           OracleCase{"tiny-olmo2", "Q8_0"},
                                           OracleCase{"small-olmo2", "Q6_K"},
                                           OracleCase{"tiny-phi", "F32"},
                                           OracleCase{"tiny-phi", "Q8_0"},
                                           OracleCase{"small-phi", "Q4_K"},
                                           OracleCase{"tiny-qwen3vl", "F32"},
                                           OracleCase{"small-qwen3vl", "Q4_K"},
                                           OracleCase{"tiny-seed-oss", "F32"},
                                           OracleCase{"tiny-seed-oss", "Q5_0"},
                                           OracleCase{"tiny-smollm3", "F32"},
                                           OracleCase{"tiny-smollm3", "Q4_1"},
                                           OracleCase{"tiny-qwen3moe", "F32"},
                                           OracleCase{"tiny-qwen3moe", "Q8_0"},
                                           OracleCase{"small-qwen3moe", "Q4_K"},
                                           OracleCase{"tiny-gpt-oss", "F32"},
                                           OracleCase{"tiny-gpt-oss", "MXFP4"},
                                           OracleCase{"small-gpt-oss", "Q8_0"},
                                           OracleCase{"tiny-mixtral", "F32"},
                                           OracleCase{"tiny-mixtral", "Q4_0"},
                                           OracleCase{"small-mixtral", "Q5_K"},
                                           OracleCase{"tiny-granitemoe", "F32"},
                                           OracleCase{"tiny-granitemoe", "Q4_1"},
                                           OracleCase{"tiny-qwen3vlmoe", "F32"},
                                           OracleCase{"small-qwen3vlmoe", "Q4_K"}),
                         [](const auto& test) {
                             std::string name =
                                 std::string(test.param.shape) + "_" + test.param.type;
                             for (char& c : name) {
                                 c = c == '-' || c == '.' ? '_' : c;
                             }
                             return name;
                         });

// Rotation settings that a checkpoint may have. Results are bit-identical to those of libllama.
void expect_equal_to_libllama(const std::filesystem::path& path) {
    LlamaPeer oracle(path);
    LoadedModel model(path);
    ReferenceForward reference(model, 1024);
    const auto tokens = random_tokens(200, model.config.n_vocab, 3);
    const auto expected = oracle.feed(tokens, LlamaPeer::Logits::every_row);
    const auto rows = reference.feed(tokens);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_TRUE(std::equal(rows[i].begin(), rows[i].end(), expected[i].begin())) << "row " << i;
    }
}

std::vector<float> last_row(const std::filesystem::path& path) {
    LoadedModel model(path);
    ForwardRig rig(model);
    return rig.feed(random_tokens(200, model.config.n_vocab, 3)).back();
}

class Rotations : public ::testing::TestWithParam<const char*> {
  protected:
    GgufVariant variant_{tiny_model(GetParam(), "F32")};
    std::string key(const char* field) const {
        return std::string(GetParam()).substr(std::string("tiny-").size()) + ".rope." + field;
    }
    void expect_changed_and_equal(const std::string& name) {
        const auto path = variant_.write(std::string(GetParam()) + name);
        EXPECT_NE(last_row(path), last_row(tiny_model(GetParam(), "F32")))
            << "the metadata must matter";
        expect_equal_to_libllama(path);
    }
};

TEST_P(Rotations, LinearScalingEqualsLibllama) {
    gguf_set_val_str(variant_.metadata(), key("scaling.type").c_str(), "linear");
    gguf_set_val_f32(variant_.metadata(), key("scaling.factor").c_str(), 4.0f);
    expect_changed_and_equal("-linear");
}

TEST_P(Rotations, YarnScalingEqualsLibllama) {
    gguf_set_val_str(variant_.metadata(), key("scaling.type").c_str(), "yarn");
    gguf_set_val_f32(variant_.metadata(), key("scaling.factor").c_str(), 4.0f);
    gguf_set_val_u32(variant_.metadata(), key("scaling.original_context_length").c_str(), 64);
    expect_changed_and_equal("-yarn");
}

TEST_P(Rotations, AnotherBaseEqualsLibllama) {
    gguf_set_val_f32(variant_.metadata(), key("freq_base").c_str(), 777.0f);
    expect_changed_and_equal("-base");
}

INSTANTIATE_TEST_SUITE_P(Architectures,
                         Rotations,
                         ::testing::Values("tiny-llama", "tiny-qwen2", "tiny-qwen3"));

// A field of an architecture, with another value than the shape has.
struct FieldCase {
    const char* shape;
    const char* field;
    std::variant<int, float, bool> value;
};

void PrintTo(const FieldCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.field;
}

class Fields : public ::testing::TestWithParam<FieldCase> {};

TEST_P(Fields, ChangeTheModelAsTheyChangeLibllamas) {
    const auto stored = tiny_model(GetParam().shape, "F32");
    GgufVariant variant(stored);
    const std::string architecture = gguf_get_val_str(
        variant.metadata(), gguf_find_key(variant.metadata(), "general.architecture"));
    const std::string key = architecture + "." + GetParam().field;
    if (const auto* number = std::get_if<float>(&GetParam().value)) {
        gguf_set_val_f32(variant.metadata(), key.c_str(), *number);
    } else if (const auto* count = std::get_if<int>(&GetParam().value)) {
        gguf_set_val_u32(variant.metadata(), key.c_str(), static_cast<std::uint32_t>(*count));
    } else {
        gguf_set_val_bool(variant.metadata(), key.c_str(), std::get<bool>(GetParam().value));
    }
    const auto path = variant.write(std::string(GetParam().shape) + "-" + GetParam().field);
    EXPECT_NE(last_row(path), last_row(stored)) << "the field must matter";
    expect_equal_to_libllama(path);
}

INSTANTIATE_TEST_SUITE_P(
    Architectures,
    Fields,
    ::testing::Values(FieldCase{"tiny-exaone4-windows", "attention.sliding_window", 7},
                      FieldCase{"tiny-exaone4-windows", "attention.sliding_window_pattern", 2},
                      FieldCase{"tiny-gemma2", "attention.sliding_window", 7},
                      FieldCase{"tiny-gemma2", "attention.sliding_window_pattern", 3},
                      FieldCase{"tiny-gemma2", "attn_logit_softcapping", 2.0f},
                      FieldCase{"tiny-gemma2", "final_logit_softcapping", 1.5f},
                      FieldCase{"tiny-gemma2", "rope.freq_base_swa", 50.0f},
                      FieldCase{"tiny-gemma3", "attention.sliding_window", 7},
                      FieldCase{"tiny-gemma3", "attention.sliding_window", 0},
                      FieldCase{"tiny-gemma3", "attention.sliding_window_pattern", 2},
                      FieldCase{"tiny-gemma3", "attention.sliding_window_pattern", 0},
                      FieldCase{"tiny-gemma3", "final_logit_softcapping", 1.5f},
                      FieldCase{"tiny-gemma3", "rope.freq_base_swa", 50.0f},
                      FieldCase{"tiny-gemma3", "rope.freq_base", 50.0f},
                      FieldCase{"tiny-glm4", "rope.freq_base", 50.0f},
                      FieldCase{"tiny-granite", "embedding_scale", 3.0f},
                      FieldCase{"tiny-granite", "residual_scale", 0.5f},
                      FieldCase{"tiny-granite", "attention.scale", 0.4f},
                      FieldCase{"tiny-granite", "logit_scale", 2.0f},
                      FieldCase{"tiny-granite", "rope.scaling.finetuned", false},
                      FieldCase{"tiny-hunyuan-dense", "rope.scaling.alpha", 100.0f},
                      FieldCase{"tiny-mistral3", "attention.temperature_scale", 0.1f},
                      FieldCase{"tiny-mistral3", "rope.scaling.original_context_length", 64},
                      FieldCase{"tiny-mistral3", "rope.scaling.yarn_beta_fast", 0.25f},
                      FieldCase{"tiny-mistral3", "rope.scaling.yarn_beta_slow", 0.5f},
                      FieldCase{"tiny-mistral3", "rope.scaling.yarn_log_multiplier", 1.0f},
                      FieldCase{"tiny-olmo2", "attention.sliding_window", 7},
                      FieldCase{"tiny-olmo2", "attention.sliding_window_pattern", 2},
                      FieldCase{"tiny-olmo2", "rope.scaling.factor", 16.0f},
                      FieldCase{"tiny-qwen3moe", "expert_used_count", 2},
                      FieldCase{"tiny-qwen3moe", "expert_used_count", 1},
                      FieldCase{"tiny-qwen3moe", "expert_used_count", 8},
                      FieldCase{"tiny-mixtral", "expert_used_count", 1},
                      FieldCase{"tiny-gpt-oss", "expert_used_count", 2},
                      FieldCase{"tiny-gpt-oss", "attention.sliding_window", 7},
                      FieldCase{"tiny-gpt-oss", "attention.sliding_window_pattern", 3},
                      FieldCase{"tiny-gpt-oss", "rope.freq_base_swa", 50.0f},
                      FieldCase{"tiny-gpt-oss", "rope.scaling.factor", 16.0f},
                      FieldCase{"tiny-granitemoe", "residual_scale", 0.5f},
                      FieldCase{"tiny-granitemoe", "embedding_scale", 3.0f},
                      FieldCase{"tiny-granitemoe", "attention.scale", 0.4f},
                      FieldCase{"tiny-granitemoe", "logit_scale", 2.0f},
                      FieldCase{"tiny-phi", "rope.scaling.attn_factor", 1.5f},
                      FieldCase{"tiny-phi", "rope.scaling.original_context_length", 2048}));

// Three layers of one window, given layer by layer.
TEST(Windows, ListedByLayerEqualLibllama) {
    GgufVariant variant(tiny_model("tiny-gemma3", "F32"));
    const std::array<std::int8_t, 6> pattern{0, 1, 1, 0, 0, 1};
    gguf_set_arr_data(variant.metadata(), "gemma3.attention.sliding_window_pattern", GGUF_TYPE_BOOL,
                      pattern.data(), pattern.size());
    const auto path = variant.write("listed-windows");
    EXPECT_NE(last_row(path), last_row(tiny_model("tiny-gemma3", "F32")));
    expect_equal_to_libllama(path);
}

TEST(RotationFactors, OfLlama3EqualLibllama) {
    GgufVariant variant(tiny_model("tiny-llama", "F32"));
    variant.add_f32("rope_freqs.weight", {1.0f, 1.0f, 1.5f, 2.0f, 4.0f, 8.0f, 8.0f, 8.0f});
    const auto path = variant.write("rope-factors");
    EXPECT_NE(last_row(path), last_row(tiny_model("tiny-llama", "F32")));
    expect_equal_to_libllama(path);
}

TEST(SplitModels, GiveTheSameResultsAsTheWholeFile) {
    const auto whole = tiny_model("tiny-llama", "Q8_0");
    const auto first_part = GgufVariant(whole).write_split("split-model");
    EXPECT_EQ(last_row(first_part), last_row(whole));
}

}  // namespace
}  // namespace knap::test::oracle_test
