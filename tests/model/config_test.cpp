#include "model/config.h"

#include <array>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "base/text.h"
#include "model/architectures/architecture.h"
#include "support/tiny_config.h"

namespace knap::test::config_test {
namespace {

using ::testing::EndsWith;
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
        {"attention.sliding_window", 64,
         "expected none, found 64 (attention to recent positions, not supported; the nearest is "
         "gemma3)"},
        {"rope.dimension_count", 10, "expected the head size, 8, found 10"},
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

// Conversions of dense models of Hunyuan have it.
TEST(Config, OneExpertIsAnMlpWhereTheArchitectureHasOne) {
    TinyGguf tiny("hunyuan-dense");
    set_u32(tiny, "expert_count", 1);
    set_u32(tiny, "expert_used_count", 1);
    EXPECT_EQ(config_of(tiny).n_experts_used(), 0);
}

using PerLayer = std::array<std::int32_t, 2>;
using Value = std::variant<std::uint32_t, float, bool, const char*, PerLayer>;

void set(TinyGguf& tiny, const char* field, const Value& value) {
    const std::string key = tiny.key(field);
    if (const auto* number = std::get_if<std::uint32_t>(&value)) {
        set_u32(tiny, field, *number);
    } else if (const auto* fraction = std::get_if<float>(&value)) {
        set_f32(tiny, field, *fraction);
    } else if (const auto* is_so = std::get_if<bool>(&value)) {
        gguf_set_val_bool(tiny.metadata(), key.c_str(), *is_so);
    } else if (const auto* text = std::get_if<const char*>(&value)) {
        set_string(tiny, field, *text);
    } else {
        const auto& numbers = std::get<PerLayer>(value);
        gguf_set_arr_data(tiny.metadata(), key.c_str(), GGUF_TYPE_INT32, numbers.data(),
                          numbers.size());
    }
}

// A value of a field that knap does not support, and what comes closest.
struct Unsupported {
    const char* architecture;
    const char* field;
    Value value;
    const char* found;  // as the refusal says it
    const char* nearest;
};

void PrintTo(const Unsupported& value, std::ostream* out) {
    *out << value.architecture << '.' << value.field;
}

class Refusal : public ::testing::TestWithParam<Unsupported> {};

TEST_P(Refusal, NamesTheReasonAndTheNearestThingThatRuns) {
    const Unsupported& value = GetParam();
    TinyGguf tiny(value.architecture);
    if (std::string_view(value.architecture) == "qwen3moe") {
        set_u32(tiny, "expert_count", 4);
        set_u32(tiny, "expert_used_count", 2);
    }
    EXPECT_EQ(config_refusal(tiny), "accepted");
    set(tiny, value.field, value.value);
    const std::string refusal = config_refusal(tiny);
    EXPECT_THAT(refusal, HasSubstr("key " + tiny.key(value.field) + ": expected "));
    EXPECT_THAT(refusal, HasSubstr(concat(", found ", value.found, " (")));
    EXPECT_THAT(refusal, EndsWith(concat(", not supported; the nearest is ", value.nearest, ")")));
    EXPECT_THAT(refusal, Not(HasSubstr("\n")));
    const std::string_view nearest = value.nearest;
    EXPECT_NE(find_architecture(nearest.substr(0, nearest.find(' '))), nullptr) << nearest;
}

const Unsupported kUnsupported[] = {
    {"llama", "rope.scaling.type", "longrope", "'longrope'", "phi3"},
    {"llama", "rope.dimension_sections", PerLayer{4, 4}, "sections", "qwen3vl"},
    {"llama", "rope.dimension_count", 4u, "4", "glm4"},
    {"qwen2", "rope.dimension_count", 4u, "4", "phi3"},
    {"llama", "attention.value_length", 16u, "16", "llama with one size"},
    {"qwen3", "attention.head_count", PerLayer{4, 2}, "4 and 2", "qwen3 with one number"},
    {"llama", "attention.head_count_kv", PerLayer{2, 4}, "2 and 4", "llama with one number"},
    {"llama", "feed_forward_length", PerLayer{64, 32}, "64 and 32", "llama with one number"},
    {"qwen3moe", "expert_used_count", PerLayer{2, 1}, "2 and 1", "qwen3moe with one number"},
    {"qwen3moe", "expert_feed_forward_length", PerLayer{32, 16}, "32 and 16",
     "qwen3moe with one number"},
    {"llama", "expert_count", 1u, "1", "llama without experts"},
    {"qwen3moe", "expert_count", 1u, "1", "qwen3moe with more"},
    {"qwen3", "expert_count", 4u, "4", "qwen3moe"},
    {"qwen3moe", "expert_group_count", 2u, "2", "qwen3moe"},
    {"qwen3moe", "expert_weights_scale", 2.5f, "2.5", "qwen3moe"},
    {"llama", "nextn_predict_layers", 1u, "1", "exaone4"},
    {"llama", "attention.sliding_window", 64u, "64", "gemma3"},
    {"llama", "attention.causal", false, "false", "llama"},
    {"llama", "attention.scale", 0.5f, "0.5", "granite"},
    {"llama", "attention.clamp_kqv", 8.0f, "8", "llama"},
    {"llama", "attention.max_alibi_bias", 8.0f, "8", "llama"},
    {"llama", "residual_scale", 0.5f, "0.5", "granite"},
    {"llama", "embedding_scale", 12.0f, "12", "granite"},
    {"llama", "logit_scale", 0.25f, "0.25", "granite"},
    {"llama", "attention.temperature_scale", 0.5f, "0.5", "mistral3"},
};
INSTANTIATE_TEST_SUITE_P(Fields, Refusal, ::testing::ValuesIn(kUnsupported));

TEST(Config, WrongTypesAreRefused) {
    TinyGguf tiny;
    set_string(tiny, "block_count", "two");
    EXPECT_THAT(config_refusal(tiny),
                HasSubstr("llama.block_count: expected an integer, found str"));
}

}  // namespace
}  // namespace knap::test::config_test
