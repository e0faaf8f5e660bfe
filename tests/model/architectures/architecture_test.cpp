// What each architecture adds to a dense decoder, read from files and refused where it is wrong.
// tests/graph/oracle_test.cpp compares what they compute with libllama.
#include "model/architectures/architecture.h"

#include <array>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/architectures/layer_text.h"
#include "model/architectures/unsupported.h"
#include "model/gguf/gguf_file.h"
#include "support/tiny_config.h"
#include "support/tiny_model.h"
#include "tools/make_model/shapes.h"

namespace knap::test::architecture_test {
namespace {

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

TEST(Unsupported, NamesTheNearestArchitectureThatRuns) {
    for (const char* name : {"gemma4", "qwen35", "deepseek2", "cohere2"}) {
        EXPECT_EQ(find_architecture(name), nullptr);
        const std::string why = why_unsupported(name);
        const auto at = why.rfind(' ') + 1;
        EXPECT_NE(find_architecture(why.substr(at, why.size() - at - 1)), nullptr) << why;
    }
    for (const Architecture& architecture : architectures()) {
        EXPECT_EQ(why_unsupported(architecture.name), "") << architecture.name;
    }
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
    EXPECT_THAT(config_refusal(llama), HasSubstr("(attention that sharpens with the position, not "
                                                 "supported)"));
    TinyGguf scaled("mistral3");
    set_f32(scaled, "attention.scale", 0.1f);
    EXPECT_THAT(config_refusal(scaled), HasSubstr("(a custom attention scale, not supported)"));
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
    EXPECT_THAT(config_refusal(tiny), HasSubstr("found 2 (experts in groups, not supported)"));
    set_u32(tiny, "expert_group_count", 1);
    set_f32(tiny, "expert_weights_scale", 2.5f);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("(scaled weights of experts, not supported)"));
    set_f32(tiny, "expert_weights_scale", 1.0f);
    EXPECT_EQ(config_refusal(tiny), "accepted");

    TinyGguf dense("qwen3");
    set_u32(dense, "expert_count", 4);
    EXPECT_THAT(config_refusal(dense), HasSubstr("found 4 (a mixture of experts, not supported)"));
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
    EXPECT_EQ(describe_layers(config_of(TinyGguf())), "");
    EXPECT_EQ(describe_layers(config_of_shape("tiny-gemma3")),
              "5 of 6 attend to 24 tokens, 5 rotate with base 10000, gelu, embeddings x8");
    EXPECT_EQ(describe_layers(config_of_shape("tiny-gemma2")),
              "2 of 4 attend to 24 tokens, scores capped at 5, gelu, embeddings x8, logits capped "
              "at 3");
    EXPECT_EQ(describe_layers(config_of_shape("tiny-smollm3")), "1 of 4 do not rotate");
    EXPECT_EQ(describe_layers(config_of_shape("tiny-glm4")), "8 of 16 channels rotate");
    EXPECT_EQ(describe_layers(config_of_shape("tiny-granitemoe")),
              "8 experts of 32, of which a token uses 3, one of 64 that every token uses, "
              "embeddings x12, residuals x0.22, logits x0.333333");
    EXPECT_EQ(describe_layers(config_of_shape("tiny-mistral3")),
              "attention sharpens every 16 tokens");
    EXPECT_EQ(describe_layers(config_of_shape("tiny-granite")),
              "embeddings x12, residuals x0.22, logits x0.333333");
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
    gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_INT8, pattern.data(), 2);
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
