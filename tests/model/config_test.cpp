#include "model/config.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "support/tiny_config.h"

namespace knap::test::config_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Config, ReadsTheSizes) {
    const ModelConfig config = config_of(TinyGguf());
    EXPECT_EQ(config.architecture, "llama");
    EXPECT_EQ(config.name, "tiny");
    EXPECT_EQ(config.n_layers, 2);
    EXPECT_EQ(config.n_embd, 32);
    EXPECT_EQ(config.n_heads, 4);
    EXPECT_EQ(config.n_kv_heads, 2);
    EXPECT_EQ(config.head_dim, 8);
    EXPECT_EQ(config.n_ff, 64);
    EXPECT_EQ(config.n_vocab, 24);
    EXPECT_EQ(config.n_ctx_train, 128);
    EXPECT_EQ(config.rms_eps, 1e-5f);
    EXPECT_EQ(config.attention_scale, 1.0f / std::sqrt(8.0f));
    EXPECT_EQ(config.n_embd_q(), 32);
    EXPECT_EQ(config.n_embd_kv(), 16);
    EXPECT_EQ(config.heads_per_kv(), 2);
}

TEST(Config, LlamaPairsNeighboursAndQwenHalves) {
    EXPECT_EQ(config_of(TinyGguf("llama")).rope.pairing, RopePairing::neighbours);
    EXPECT_EQ(config_of(TinyGguf("qwen2")).rope.pairing, RopePairing::halves);
    EXPECT_EQ(config_of(TinyGguf("qwen3")).rope.pairing, RopePairing::halves);
}

TEST(Config, OptionalFieldsHaveDefaults) {
    TinyGguf tiny;
    remove(tiny, "attention.head_count_kv");
    remove(tiny, "rope.freq_base");
    gguf_remove_key(tiny.metadata(), "general.name");
    const ModelConfig config = config_of(tiny);
    EXPECT_EQ(config.name, "");
    EXPECT_EQ(config.n_kv_heads, 4);
    EXPECT_EQ(config.rope.freq_base, 10000.0f);
    EXPECT_EQ(config.rope.n_rot, 8);
    EXPECT_EQ(config.rope.n_ctx_orig, 128);
    EXPECT_EQ(config.rope.freq_scale, 1.0f);
    EXPECT_EQ(config.rope.ext_factor, 0.0f);
    EXPECT_EQ(config.rope.attn_factor, 1.0f);
    EXPECT_EQ(config.rope.scaling, "none");
}

TEST(Config, HeadSizeNeedNotDivideTheEmbedding) {
    TinyGguf tiny("qwen3");
    set_u32(tiny, "attention.key_length", 16);
    set_u32(tiny, "attention.value_length", 16);
    const ModelConfig config = config_of(tiny);
    EXPECT_EQ(config.head_dim, 16);
    EXPECT_EQ(config.n_embd_q(), 64);
    EXPECT_EQ(config.rope.n_rot, 16);
}

TEST(Config, CountsPerLayerMustBeEqual) {
    TinyGguf tiny;
    const std::int32_t equal[] = {2, 2};
    const std::string key = tiny.key("attention.head_count_kv");
    gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_INT32, equal, 2);
    EXPECT_EQ(config_of(tiny).n_kv_heads, 2);

    const std::int32_t different[] = {2, 4};
    gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_INT32, different, 2);
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("expected the same value in every layer, found 2 and 4"));

    gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_INT32, equal, 1);
    EXPECT_THAT(config_refusal(tiny), HasSubstr("expected a value for each of 2 layers, found 1"));
}

TEST(Config, LinearScalingDividesFrequencies) {
    TinyGguf tiny;
    set_string(tiny, "rope.scaling.type", "linear");
    set_f32(tiny, "rope.scaling.factor", 4.0f);
    EXPECT_EQ(config_of(tiny).rope.freq_scale, 0.25f);
    EXPECT_EQ(config_of(tiny).rope.scaling, "linear");

    TinyGguf old;
    set_f32(old, "rope.scale_linear", 2.0f);
    EXPECT_EQ(config_of(old).rope.freq_scale, 0.5f);

    set_string(tiny, "rope.scaling.type", "none");
    EXPECT_EQ(config_of(tiny).rope.freq_scale, 1.0f);
    EXPECT_EQ(config_of(tiny).rope.scaling, "none");
}

// ggml itself multiplies by 1 + 0.1 ln(4), so ours is only the factor that the file adds.
TEST(Config, YarnLeavesOutTheFactorThatGgmlApplies) {
    TinyGguf tiny("qwen2");
    set_string(tiny, "rope.scaling.type", "yarn");
    set_f32(tiny, "rope.scaling.factor", 4.0f);
    set_u32(tiny, "rope.scaling.original_context_length", 32);
    const RopeConfig rope = config_of(tiny).rope;
    EXPECT_EQ(rope.scaling, "yarn");
    EXPECT_EQ(rope.freq_scale, 0.25f);
    EXPECT_EQ(rope.ext_factor, 1.0f);
    EXPECT_NEAR(rope.attn_factor, 1.0f, 1e-6f);
    EXPECT_EQ(rope.beta_fast, 32.0f);
    EXPECT_EQ(rope.beta_slow, 1.0f);
    EXPECT_EQ(rope.n_ctx_orig, 32);

    set_f32(tiny, "rope.scaling.attn_factor", 0.5f);
    EXPECT_NEAR(config_of(tiny).rope.attn_factor, 0.5f, 1e-6f);
    set_f32(tiny, "rope.scaling.yarn_beta_fast", 16.0f);  // libllama ignores it here
    EXPECT_EQ(config_of(tiny).rope.beta_fast, 32.0f);
}

TEST(Config, UnknownArchitectureListsTheKnownOnes) {
    EXPECT_THAT(config_refusal(TinyGguf("mine")),
                HasSubstr("key general.architecture: expected one of llama, qwen2, qwen3, "));
    EXPECT_THAT(config_refusal(TinyGguf("mine")), HasSubstr(", found 'mine'"));
    EXPECT_THAT(config_refusal(TinyGguf("mine")), Not(HasSubstr("nearest")));
    EXPECT_THAT(config_refusal(TinyGguf("gemma4")),
                HasSubstr(", found 'gemma4' (heads whose size differs by layer; the nearest is "
                          "gemma3)"));
    EXPECT_THAT(config_refusal(TinyGguf("two\nlines")), HasSubstr("found 'two?lines'"));
    TinyGguf tiny;
    gguf_remove_key(tiny.metadata(), "general.architecture");
    EXPECT_THAT(config_refusal(tiny), HasSubstr("found no such key"));
}

TEST(Config, RequiredFieldsAreRequired) {
    for (const char* field :
         {"block_count", "embedding_length", "context_length", "feed_forward_length",
          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
        TinyGguf tiny;
        remove(tiny, field);
        EXPECT_THAT(config_refusal(tiny), HasSubstr("key " + tiny.key(field) + ": expected"));
        EXPECT_THAT(config_refusal(tiny), HasSubstr("found no such key"));
    }
    TinyGguf tiny;
    gguf_remove_key(tiny.metadata(), "tokenizer.ggml.tokens");
    EXPECT_THAT(config_refusal(tiny), HasSubstr("key llama.vocab_size: expected"));
}

struct BadCount {
    const char* field;
    std::uint32_t value;
    const char* message;
};

TEST(Config, CountsOutOfRangeAreRefused) {
    const BadCount cases[] = {
        {"block_count", 0, "expected 1 to 1024, found 0"},
        {"block_count", 1025, "expected 1 to 1024, found 1025"},
        {"embedding_length", 0, "expected 1 to 262144, found 0"},
        {"embedding_length", 4294967295u, "found 4294967295"},
        {"context_length", 0, "found 0"},
        {"context_length", 4294967295u, "found 4294967295"},
        {"feed_forward_length", 0, "found 0"},
        {"attention.head_count", 0, "found 0"},
        {"attention.head_count_kv", 0, "found 0"},
        {"attention.head_count_kv", 3, "expected a divisor of the 4 heads, found 3"},
        {"attention.head_count_kv", 8, "expected a divisor of the 4 heads, found 8"},
        {"attention.value_length", 16, "expected the size of keys, 8, found 16"},
        {"rope.dimension_count", 4, "expected the head size, 8, found 4"},
        {"nextn_predict_layers", 1, "not supported"},
        {"attention.sliding_window", 64, "expected none, found 64 (not supported)"},
    };
    for (const BadCount& bad : cases) {
        TinyGguf tiny;
        set_u32(tiny, bad.field, bad.value);
        EXPECT_THAT(config_refusal(tiny), HasSubstr("config.gguf: key " + tiny.key(bad.field)));
        EXPECT_THAT(config_refusal(tiny), HasSubstr(bad.message));
    }
    TinyGguf crowded;  // more heads than channels
    set_u32(crowded, "attention.head_count", 64);
    EXPECT_THAT(config_refusal(crowded), HasSubstr("expected an even number up to 4096, found 0"));
    TinyGguf odd;
    set_u32(odd, "attention.key_length", 9);
    set_u32(odd, "attention.value_length", 9);
    EXPECT_THAT(config_refusal(odd), HasSubstr("expected an even number up to 4096, found 9"));
}

TEST(Config, NumbersOutOfRangeAreRefused) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
    const std::pair<const char*, float> cases[] = {
        {"attention.layer_norm_rms_epsilon", -1.0f},
        {"attention.layer_norm_rms_epsilon", kNaN},
        {"rope.freq_base", 0.0f},
        {"rope.freq_base", -1.0f},
        {"rope.freq_base", kInfinity},
        {"rope.scaling.factor", -2.0f},
        {"rope.scaling.factor", kNaN},
        {"rope.scaling.attn_factor", kInfinity},
        {"attention.scale", 0.5f},
        {"attention.clamp_kqv", 8.0f},
        {"logit_scale", 0.25f},
    };
    for (const auto& [field, value] : cases) {
        TinyGguf tiny;
        set_f32(tiny, field, value);
        EXPECT_THAT(config_refusal(tiny), HasSubstr("key " + tiny.key(field) + ": expected"));
    }
}

TEST(Config, FieldsThatChangeNothingAreAccepted) {
    TinyGguf tiny;
    set_u32(tiny, "expert_count", 0);
    set_u32(tiny, "attention.sliding_window", 128);  // the whole context
    set_f32(tiny, "logit_scale", 1.0f);
    set_f32(tiny, "attention.scale", 0.0f);
    const std::int32_t sections[] = {0, 0, 0, 0};
    gguf_set_arr_data(tiny.metadata(), tiny.key("rope.dimension_sections").c_str(), GGUF_TYPE_INT32,
                      sections, 4);
    EXPECT_EQ(config_of(tiny).n_layers, 2);
}

TEST(Config, OtherKindsOfRotationAndAttentionAreRefused) {
    TinyGguf longrope;
    set_string(longrope, "rope.scaling.type", "longrope");
    EXPECT_THAT(config_refusal(longrope),
                HasSubstr("expected none, linear or yarn, found 'longrope'"));

    TinyGguf sections;
    const std::int32_t values[] = {4, 4, 0, 0};
    gguf_set_arr_data(sections.metadata(), sections.key("rope.dimension_sections").c_str(),
                      GGUF_TYPE_INT32, values, 4);
    EXPECT_THAT(config_refusal(sections), HasSubstr("rope.dimension_sections: expected none"));

    TinyGguf encoder;
    gguf_set_val_bool(encoder.metadata(), encoder.key("attention.causal").c_str(), false);
    EXPECT_THAT(config_refusal(encoder), HasSubstr("attention.causal: expected true, found false"));
}

TEST(Config, WrongTypesAreRefused) {
    TinyGguf tiny;
    set_string(tiny, "block_count", "two");
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("llama.block_count: expected an integer, found str"));
}

}  // namespace
}  // namespace knap::test::config_test
