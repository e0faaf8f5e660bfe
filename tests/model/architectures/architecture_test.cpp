// What each architecture adds to a dense decoder, read from files and refused where it is wrong.
// tests/graph/oracle_test.cpp compares what they compute with libllama.
#include "model/architectures/architecture.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text_file.h"
#include "model/architectures/layer_text.h"
#include "model/architectures/unsupported.h"
#include "model/config_reader.h"
#include "model/gguf/gguf_file.h"
#include "support/llama_sources.h"
#include "support/tiny_config.h"
#include "support/tiny_model.h"
#include "tools/make_model/shapes.h"

namespace knap::test::architecture_test {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

ModelConfig config_of_shape(std::string_view shape) {
    return read_config(GgufFile::open(tiny_model(shape, "F32")));
}

std::vector<int> windows_of(const ModelConfig& config) {
    std::vector<int> windows;
    for (const LayerSpec& layer : config.layers) {
        windows.push_back(layer.window);
    }
    return windows;
}

// Layers by their rotation: n, g or l.
std::string rotations_of(const ModelConfig& config) {
    std::string rotations;
    for (const LayerSpec& layer : config.layers) {
        rotations += layer.rotation == Rotation::none     ? 'n'
                     : layer.rotation == Rotation::global ? 'g'
                                                          : 'l';
    }
    return rotations;
}

void set_sections(TinyGguf& tiny, const std::vector<std::int32_t>& sections) {
    gguf_set_arr_data(tiny.metadata(), tiny.key("rope.dimension_sections").c_str(), GGUF_TYPE_INT32,
                      sections.data(), sections.size());
}

TEST(Architectures, EachHasATinyAndASmallShapeAndOneOfACheckpoint) {
    for (const Architecture& architecture : architectures()) {
        int n_tiny = 0;
        int n_small = 0;
        int n_full = 0;
        for (const ModelShape& shape : known_shapes()) {
            if (shape.architecture == architecture.name) {
                const bool is_tiny = shape.name.starts_with("tiny-");
                const bool is_small = shape.name.starts_with("small-");
                n_tiny += is_tiny ? 1 : 0;
                n_small += is_small ? 1 : 0;
                n_full += is_tiny || is_small ? 0 : 1;
            }
        }
        EXPECT_GE(n_tiny, 1) << architecture.name;
        EXPECT_GE(n_small, 1) << architecture.name;
        EXPECT_GE(n_full, 1) << architecture.name;
    }
}

TEST(Architectures, ThoseOfBeforeAreDenseDecodersWithoutMore) {
    for (const char* name : {"llama", "qwen2", "qwen3", "ernie4_5", "seed_oss"}) {
        const ModelConfig config = config_of(TinyGguf(name));
        EXPECT_EQ(rotations_of(config), "gg");
        EXPECT_THAT(windows_of(config), ElementsAre(0, 0));
        EXPECT_EQ(config.activation, Activation::silu);
        EXPECT_EQ(config.head_norm, HeadNorm::per_head);
        EXPECT_EQ(config.embedding_scale, 1.0f);
        EXPECT_EQ(config.residual_scale, 1.0f);
        EXPECT_EQ(config.logit_scale, 1.0f);
        EXPECT_EQ(config.soft_cap, 0.0f);
        EXPECT_EQ(config.final_soft_cap, 0.0f);
        EXPECT_EQ(config.temperature.scale, 0.0f);
        EXPECT_TRUE(config.rope.divisors.empty());
    }
}

// The names of all architectures that llama.cpp knows, from its sources; empty: they are not there.
std::vector<std::string> names_in_llama() {
    const fs::path list = test::llama_sources() / "src" / "llama-arch.cpp";
    std::vector<std::string> names;
    if (!fs::exists(list)) {
        return names;
    }
    const std::string text = read_text_file(list, "list of architectures");
    static const std::regex kEntry(R"RE(\{ LLM_ARCH_\w+, +"([\w.-]+)")RE");
    for (std::sregex_iterator entry(text.begin(), text.end(), kEntry), end; entry != end; ++entry) {
        names.push_back((*entry)[1]);
    }
    return names;
}

TEST(Unsupported, HasAReasonForEveryArchitectureOfLlamaThatDoesNotRun) {
    const std::vector<std::string> names = names_in_llama();
    if (names.empty()) {
        GTEST_SKIP() << "no sources of llama.cpp (deps/setup sources)";
    }
    EXPECT_GT(names.size(), 100U);
    for (const std::string& name : names) {
        EXPECT_NE(find_architecture(name) == nullptr, why_unsupported(name).empty()) << name;
    }
}

TEST(Unsupported, NamesTheNearestArchitectureThatRuns) {
    EXPECT_GT(unsupported_names().size(), 100U);
    for (const std::string_view name : unsupported_names()) {
        EXPECT_EQ(find_architecture(name), nullptr) << name;
        const std::string why = why_unsupported(name);
        const auto at = why.rfind(' ') + 1;
        EXPECT_NE(find_architecture(why.substr(at, why.size() - at - 1)), nullptr) << why;
    }
    EXPECT_EQ(why_unsupported("mine"), "");
}

TEST(Granite, HasFourScalars) {
    const ModelConfig config = config_of_shape("tiny-granite");
    EXPECT_EQ(config.embedding_scale, 12.0f);
    EXPECT_EQ(config.residual_scale, 0.22f);
    EXPECT_EQ(config.attention_scale, 0.1f);
    EXPECT_EQ(config.logit_scale, 1.0f / 3.0f);

    TinyGguf tiny("granite");
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("key granite.logit_scale: expected a number other than "
                          "0, found no such key"));
    set_f32(tiny, "logit_scale", 0.0f);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected a number other than 0, found 0"));
    set_f32(tiny, "logit_scale", 8.0f);
    set_f32(tiny, "attention.scale", 0.0f);  // none
    EXPECT_EQ(config_of(tiny).attention_scale, 1.0f / std::sqrt(8.0f));
    gguf_set_val_bool(tiny.metadata(), tiny.key("rope.scaling.finetuned").c_str(), false);
    EXPECT_EQ(rotations_of(config_of(tiny)), "nn");
}

TEST(Mistral3, SharpensAttentionAndSetsAllOfYarn) {
    const ModelConfig config = config_of_shape("tiny-mistral3");
    EXPECT_EQ(config.temperature.scale, 0.5f);
    EXPECT_EQ(config.temperature.length, 16);
    EXPECT_EQ(query_scale(config.temperature, 15), 1.0f);
    EXPECT_FLOAT_EQ(query_scale(config.temperature, 16), 1.0f + 0.5f * std::log(2.0f));
    EXPECT_FLOAT_EQ(query_scale(config.temperature, 47), 1.0f + 0.5f * std::log(3.0f));
    EXPECT_EQ(config.rope.beta_fast, 16.0f);
    EXPECT_EQ(config.rope.beta_slow, 2.0f);
    // ggml multiplies by 1 + 0.1 ln 4; the multiplier divides by 1 + 0.05 ln 4.
    EXPECT_NEAR(config.rope.attn_factor, 1.0f / (1.0f + 0.05f * std::log(4.0f)), 1e-6f);

    TinyGguf llama;
    set_f32(llama, "attention.temperature_scale", 0.1f);
    EXPECT_THAT(
        config_refusal(llama),
        HasSubstr("(attention that sharpens with the position, not supported; the nearest is "
                  "mistral3)"));
    TinyGguf scaled("mistral3");
    set_f32(scaled, "attention.scale", 0.1f);
    EXPECT_THAT(config_refusal(scaled),
                HasSubstr("(a custom attention scale, not supported; the nearest is granite)"));
}

TEST(Phi3, RotatesInPartAndReadsLongrope) {
    const ModelConfig config = config_of_shape("tiny-phi");
    EXPECT_EQ(config.rope.n_rot, 8);
    EXPECT_EQ(config.head_dim, 16);
    EXPECT_THAT(windows_of(config), ElementsAre(0, 0, 0, 0)) << "libllama ignores its window";

    TinyGguf tiny("phi3");
    set_string(tiny, "rope.scaling.type", "longrope");
    EXPECT_EQ(config_of(tiny).rope.scaling, "none");
    for (const std::uint32_t n_rot : {10u, 3u}) {
        set_u32(tiny, "rope.dimension_count", n_rot);
        EXPECT_THAT(config_refusal(tiny),
                    HasSubstr("expected an even number up to the head size, 8, found"));
    }
}

TEST(Smollm3, EveryFourthLayerDoesNotRotate) {
    EXPECT_EQ(rotations_of(config_of(TinyGguf("smollm3", {.n_layers = 9}))), "gggngggng");
}

TEST(Qwen3Vl, PairsOfTheFourthPositionDoNotRotate) {
    EXPECT_THAT(config_of_shape("tiny-qwen3vl").rope.divisors,
                ElementsAre(1, 1, 1, 1, kInfinity, kInfinity, kInfinity, kInfinity));
    // Those of the checkpoints, for heads of 128.
    const std::vector<float> divisors = config_of_shape("small-qwen3vl").rope.divisors;
    ASSERT_EQ(divisors.size(), 64u);
    for (std::size_t pair = 0; pair < divisors.size(); ++pair) {
        EXPECT_EQ(divisors[pair], pair == 61 || pair == 62 ? kInfinity : 1.0f) << pair;
    }
    TinyGguf tiny("qwen3vl");
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected 4 numbers, found no such key"));
    set_sections(tiny, {1, 1, 1});
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected 4 numbers, found 3"));
    set_sections(tiny, {0, 0, 0, 0});
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected a number above 0, found none"));
    set_sections(tiny, {1 << 30, 1, 1, 0});
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected at most 8 each, found 1073741824"));
}

TEST(HunyuanDense, NormalisesLastAndRaisesTheBase) {
    TinyGguf tiny("hunyuan-dense");
    EXPECT_EQ(config_of(tiny).head_norm, HeadNorm::after_rotation);
    EXPECT_EQ(config_of(tiny).rope.freq_base, 10000.0f);
    set_f32(tiny, "rope.scaling.alpha", 16.0f);
    EXPECT_FLOAT_EQ(config_of(tiny).rope.freq_base, 10000.0f * std::pow(16.0f, 8.0f / 6.0f));
}

TEST(Gemma3, FiveLayersOfSixHaveAWindowAndAnotherBase) {
    const ModelConfig config = config_of_shape("tiny-gemma3");
    EXPECT_THAT(windows_of(config), ElementsAre(24, 24, 24, 24, 24, 0));
    EXPECT_EQ(rotations_of(config), "lllllg");
    EXPECT_EQ(config.rope.freq_base, 1e6f);
    EXPECT_EQ(config.rope.freq_scale, 0.125f);
    EXPECT_EQ(config.local_rope.freq_base, 10000.0f);
    EXPECT_EQ(config.local_rope.freq_scale, 1.0f);
    EXPECT_EQ(config.local_rope.n_rot, config.rope.n_rot);
    EXPECT_EQ(config.activation, Activation::gelu);
    EXPECT_EQ(config.embedding_scale, 8.0f);
    EXPECT_EQ(config.soft_cap, 0.0f);
    EXPECT_EQ(config.attention_scale, 0.25f);

    TinyGguf largest("gemma3", {.n_layers = 62, .n_embd = 36, .n_heads = 2, .n_kv_heads = 2});
    set_u32(largest, "attention.key_length", 16);
    set_u32(largest, "attention.value_length", 16);
    EXPECT_EQ(config_of(largest).attention_scale, 1.0f / std::sqrt(18.0f));
    EXPECT_EQ(rotations_of(config_of(largest)), std::string(62, 'g')) << "a file without a window";
}

TEST(Gemma2, HasSoftCapsAndAWindowInEverySecondLayer) {
    const ModelConfig config = config_of_shape("tiny-gemma2");
    EXPECT_THAT(windows_of(config), ElementsAre(24, 0, 24, 0));
    EXPECT_EQ(config.soft_cap, 5.0f);
    EXPECT_EQ(config.final_soft_cap, 3.0f);

    TinyGguf tiny("gemma2");
    set_u32(tiny, "context_length", 8192);
    EXPECT_THAT(windows_of(config_of(tiny)), ElementsAre(4096, 0));
    EXPECT_EQ(config_of(tiny).soft_cap, 50.0f);
    EXPECT_EQ(config_of(tiny).final_soft_cap, 30.0f);
    set_u32(tiny, "context_length", 4096);  // a window that hides nothing
    EXPECT_THAT(windows_of(config_of(tiny)), ElementsAre(0, 0));
    for (const char* field : {"attn_logit_softcapping", "final_logit_softcapping"}) {
        TinyGguf uncapped("gemma2");
        set_f32(uncapped, field, 0.0f);
        EXPECT_THAT(config_refusal(uncapped), HasSubstr("expected above 0, found 0"));
    }
    set_u32(tiny, "attention.sliding_window", 0);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected 1 or more, found 0"));
    TinyGguf largest("gemma2", {.n_layers = 46, .n_embd = 36, .n_heads = 2, .n_kv_heads = 2});
    set_u32(largest, "attention.key_length", 16);
    set_u32(largest, "attention.value_length", 16);
    EXPECT_EQ(config_of(largest).attention_scale, 1.0f / std::sqrt(18.0f));
}

TEST(Olmo2, LayersWithAWindowDoNotStretchTheirContext) {
    const ModelConfig config = config_of_shape("tiny-olmo2");
    EXPECT_THAT(windows_of(config), ElementsAre(24, 24, 24, 0));
    EXPECT_EQ(rotations_of(config), "lllg");
    EXPECT_EQ(config.head_norm, HeadNorm::whole_row);
    EXPECT_EQ(config.rope.ext_factor, 1.0f);
    EXPECT_EQ(config.local_rope.ext_factor, 0.0f);
    EXPECT_EQ(config.local_rope.freq_scale, 1.0f);
    EXPECT_EQ(config.local_rope.attn_factor, 1.0f);
    EXPECT_EQ(config.local_rope.freq_base, config.rope.freq_base);
    EXPECT_EQ(rotations_of(config_of(TinyGguf("olmo2"))), "gg");
}

TEST(Exaone4, OnlyLayersWithAWindowRotateInTheLargeModel) {
    EXPECT_EQ(rotations_of(config_of(TinyGguf("exaone4"))), "gg");
    const ModelConfig config = config_of_shape("tiny-exaone4-windows");
    EXPECT_EQ(rotations_of(config).substr(0, 9), "gggngggng");
    EXPECT_EQ(config.layers[2].window, 24);
    EXPECT_EQ(config.layers[3].window, 0);
}

TEST(Exaone4, LayersThatPredictFurtherTokensAreIgnored) {
    TinyGguf tiny("exaone4", {.n_layers = 3});
    set_u32(tiny, "nextn_predict_layers", 1);
    EXPECT_EQ(config_of(tiny).n_layers, 2);
    EXPECT_EQ(config_of(tiny).layers.size(), 2u);
    EXPECT_EQ(describe_layers(config_of(tiny)),
              "1 more predicts further tokens, and is ignored, heads normalised, norms only behind "
              "modules");
    set_u32(tiny, "nextn_predict_layers", 3);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected fewer than the 3 layers, found 3"));
    TinyGguf other("qwen3");
    set_u32(other, "nextn_predict_layers", 1);
    EXPECT_THAT(config_refusal(other), HasSubstr("(layers for multi-token prediction, not"));
}

TEST(Experts, AreReadFromEveryArchitectureThatHasThem) {
    const ExpertSpec qwen = *config_of_shape("tiny-qwen3moe").layer(3).experts;
    EXPECT_EQ(qwen.n_experts, 8);
    EXPECT_EQ(qwen.n_used, 3);
    EXPECT_EQ(qwen.n_ff, 32);
    EXPECT_EQ(qwen.n_ff_shared, 0);
    EXPECT_EQ(qwen.gating, Gating::softmax);
    EXPECT_TRUE(qwen.normalises);
    const ModelConfig gpt_oss = config_of_shape("tiny-gpt-oss");
    EXPECT_EQ(gpt_oss.layer(0).experts->gating, Gating::chosen);
    EXPECT_FALSE(gpt_oss.layer(0).experts->normalises);
    EXPECT_EQ(gpt_oss.n_experts_used(), 3);
    EXPECT_EQ(config_of_shape("tiny-mixtral").layer(0).experts->n_ff, 96);
    const ModelConfig mistral = config_of_shape("tiny-mistral3-moe");
    EXPECT_EQ(mistral.layer(3).experts->n_used, 2);
    EXPECT_EQ(mistral.temperature.scale, 0.5f);
    EXPECT_FALSE(config_of_shape("tiny-mistral3").layer(3).experts.has_value());
    const ModelConfig granite = config_of_shape("tiny-granitemoe");
    EXPECT_EQ(granite.layer(0).experts->n_ff_shared, 64);
    EXPECT_EQ(granite.residual_scale, 0.22f);
    EXPECT_FALSE(config_of(TinyGguf()).layer(0).experts.has_value());
    EXPECT_EQ(config_of(TinyGguf()).n_experts_used(), 0);
}

TEST(Experts, WrongNumbersAreRefused) {
    TinyGguf tiny("qwen3moe");
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("key qwen3moe.expert_count: expected 1 to 1024, found no such key"));
    set_u32(tiny, "expert_count", 1);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected 2 to 1024, found 1"));
    set_u32(tiny, "expert_count", 4);
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("expert_used_count: expected 1 to 4, found no such key"));
    for (const std::uint32_t n_used : {0u, 5u}) {
        set_u32(tiny, "expert_used_count", n_used);
        EXPECT_THAT(config_refusal(tiny), HasSubstr("expert_used_count: expected 1 to 4, found"));
    }
    set_u32(tiny, "expert_used_count", 2);
    EXPECT_EQ(config_of(tiny).layer(1).experts->n_ff, 32) << "64 for the two of a row";
    set_u32(tiny, "expert_feed_forward_length", 0);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expert_feed_forward_length: expected 1 to"));
    set_u32(tiny, "expert_feed_forward_length", 16);
    EXPECT_EQ(config_of(tiny).layer(1).experts->n_ff, 16);
    set_u32(tiny, "expert_group_count", 2);
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("found 2 (experts in groups, not supported; the nearest is qwen3moe)"));
    set_u32(tiny, "expert_group_count", 1);
    set_f32(tiny, "expert_weights_scale", 2.5f);
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("(scaled weights of experts, not supported; the nearest is qwen3moe)"));
    set_f32(tiny, "expert_weights_scale", 1.0f);
    EXPECT_EQ(config_refusal(tiny), "accepted");

    TinyGguf dense("qwen3");
    set_u32(dense, "expert_count", 4);
    EXPECT_THAT(
        config_refusal(dense),
        HasSubstr("found 4 (a mixture of experts, not supported; the nearest is qwen3moe)"));
}

// No architecture here has both experts and layers for multi-token prediction.
TEST(Experts, ListsCoverIgnoredLayers) {
    TinyGguf tiny("qwen3moe", {.n_layers = 3});
    set_u32(tiny, "expert_count", 4);
    const std::array<std::int32_t, 3> n_used{2, 2, 2};
    gguf_set_arr_data(tiny.metadata(), tiny.key("expert_used_count").c_str(), GGUF_TYPE_INT32,
                      n_used.data(), n_used.size());
    ModelConfig config = config_of(tiny);
    config.n_layers = 2;
    config.n_ignored_layers = 1;
    const GgufFile file = GgufFile::open(write_tiny(tiny, "ignored.gguf"));
    read_experts(ConfigReader(file, "qwen3moe"), {}, config);
    EXPECT_EQ(config.layer(1).experts->n_used, 2);
}

TEST(GptOss, EverySecondLayerHasAWindowAndAllNeedALengthOfExperts) {
    const ModelConfig config = config_of_shape("tiny-gpt-oss");
    EXPECT_THAT(windows_of(config), ElementsAre(24, 0, 24, 0));
    EXPECT_EQ(rotations_of(config), "lglg");
    EXPECT_EQ(config.activation, Activation::clamped_swiglu);
    EXPECT_EQ(config.n_embd_q(), 128) << "wider than the embedding";
    EXPECT_EQ(config.rope.ext_factor, 1.0f);
    EXPECT_EQ(config.local_rope.ext_factor, 1.0f);

    TinyGguf tiny("gpt-oss");
    EXPECT_THAT(config_refusal(tiny), HasSubstr("sliding_window: expected 1 or more, found none"));
    set_u32(tiny, "attention.sliding_window", 8);
    set_u32(tiny, "expert_count", 4);
    set_u32(tiny, "expert_used_count", 2);
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("expert_feed_forward_length: expected 1 to 1048576, found no such key"));
    set_u32(tiny, "expert_feed_forward_length", 32);
    remove(tiny, "feed_forward_length");
    EXPECT_EQ(config_of(tiny).n_ff, 0);
}

TEST(LayerText, SaysWhatLayersAddToADenseDecoder) {
    const auto text_of = [](std::string_view shape) {
        return describe_layers(config_of_shape(shape));
    };
    for (const char* shape : {"tiny-llama", "tiny-qwen2", "tiny-ernie4.5", "tiny-seed-oss"}) {
        EXPECT_EQ(text_of(shape), "") << shape;
    }
    EXPECT_EQ(text_of("tiny-qwen3"), "heads normalised");
    EXPECT_EQ(
        text_of("tiny-gemma3"),
        "5 of 6 attend to 24 tokens, 5 rotate with base 10000, heads normalised, norms behind "
        "modules too, gelu, embeddings x8");
    EXPECT_EQ(text_of("tiny-gemma2"),
              "2 of 4 attend to 24 tokens, scores capped at 5, norms behind modules too, gelu, "
              "embeddings x8, logits capped at 3");
    EXPECT_EQ(text_of("tiny-gemma3-deep"),
              "52 of 62 attend to 24 tokens, 52 rotate with base 10000, heads normalised, scores "
              "x0.25, norms behind modules too, gelu, embeddings x8");
    EXPECT_EQ(text_of("tiny-smollm3"), "1 of 4 do not rotate");
    EXPECT_EQ(text_of("tiny-glm4"), "8 of 16 channels rotate, norms behind modules too");
    EXPECT_EQ(text_of("tiny-phi"), "8 of 16 channels rotate");
    EXPECT_EQ(text_of("tiny-qwen3vl"), "8 of 16 channels rotate, heads normalised");
    EXPECT_EQ(text_of("tiny-olmo2"),
              "3 of 4 attend to 24 tokens, queries and keys normalised, norms only behind modules");
    EXPECT_EQ(text_of("tiny-exaone4"), "heads normalised, norms only behind modules");
    EXPECT_EQ(text_of("tiny-hunyuan-dense"), "heads normalised after they rotate");
    EXPECT_EQ(text_of("tiny-granitemoe"),
              "scores x0.1, 8 experts of 32, of which a token uses 3, one of 64 that every token "
              "uses, embeddings x12, residuals x0.22, logits x0.333333");
    EXPECT_EQ(text_of("tiny-gpt-oss"),
              "2 of 4 attend to 24 tokens, a score without a value for each head, clamped swiglu, "
              "8 experts of 32, of which a token uses 3");
    EXPECT_EQ(text_of("tiny-mistral3"), "attention sharpens every 16 tokens");
    EXPECT_EQ(text_of("tiny-mistral3-moe"),
              "attention sharpens every 16 tokens, 8 experts of 96, of which a token uses 2");
    EXPECT_EQ(text_of("tiny-granite"),
              "scores x0.1, embeddings x12, residuals x0.22, logits x0.333333");
}

TEST(Windows, PatternsMayBeIntegersAsInLibllama) {
    TinyGguf tiny("gemma3", {.n_layers = 3});
    set_u32(tiny, "attention.sliding_window", 24);
    const std::string key = tiny.key("attention.sliding_window_pattern");
    const std::array<std::int32_t, 3> pattern{0, 1, 2};
    for (const gguf_type type : {GGUF_TYPE_INT32, GGUF_TYPE_UINT32}) {
        gguf_set_arr_data(tiny.metadata(), key.c_str(), type, pattern.data(), pattern.size());
        EXPECT_THAT(windows_of(config_of(tiny)), ElementsAre(0, 24, 24));
    }
}

TEST(Windows, PatternsMayCoverIgnoredLayers) {
    constexpr int kLayers = 64;  // the one EXAONE 4 with windows
    TinyGguf tiny("exaone4", {.n_layers = kLayers + 1});
    set_u32(tiny, "nextn_predict_layers", 1);
    set_u32(tiny, "attention.sliding_window", 24);
    std::array<std::int8_t, kLayers + 2> pattern{1, 0, 0, 1};
    const std::string key = tiny.key("attention.sliding_window_pattern");
    for (const int n_values : {kLayers, kLayers + 1}) {
        gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_BOOL, pattern.data(),
                          static_cast<std::size_t>(n_values));
        const std::vector<int> windows = windows_of(config_of(tiny));
        ASSERT_EQ(windows.size(), std::size_t{kLayers});
        EXPECT_THAT(std::vector(windows.begin(), windows.begin() + 5),
                    ElementsAre(24, 0, 0, 24, 0));
    }
    for (const int n_values : {kLayers - 1, kLayers + 2}) {
        gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_BOOL, pattern.data(),
                          static_cast<std::size_t>(n_values));
        EXPECT_THAT(config_refusal(tiny), HasSubstr("expected a value for each of 64 layers"));
    }
}

TEST(Windows, PatternsAreChecked) {
    TinyGguf tiny("gemma3");
    set_u32(tiny, "attention.sliding_window", 24);
    const std::string key = tiny.key("attention.sliding_window_pattern");
    const std::array<std::int8_t, 3> pattern{1, 0, 1};
    gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_BOOL, pattern.data(), 2);
    EXPECT_THAT(windows_of(config_of(tiny)), ElementsAre(24, 0));
    gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_BOOL, pattern.data(), 3);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected a value for each of 2 layers, found 3"));
    const std::array<float, 2> numbers{1, 0};
    gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_FLOAT32, numbers.data(), 2);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected an array of bools, found"));
    gguf_set_val_u32(tiny.metadata(), key.c_str(), 0);
    EXPECT_THAT(windows_of(config_of(tiny)), ElementsAre(24, 24));
    gguf_set_val_u32(tiny.metadata(), key.c_str(), 1);
    EXPECT_THAT(windows_of(config_of(tiny)), ElementsAre(0, 0));
    gguf_set_val_u64(tiny.metadata(), tiny.key("attention.sliding_window").c_str(), 1ull << 40);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected 0 to 2147483647, found 1099511627776"));
    set_u32(tiny, "attention.sliding_window", 24);
    set_f32(tiny, "rope.freq_base_swa", 0.0f);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("freq_base_swa: expected above 0, found 0"));
}

}  // namespace
}  // namespace knap::test::architecture_test
