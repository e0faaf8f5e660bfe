#include "tools/make_model/shapes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace knap {

namespace {

constexpr Llama3RopeScaling kScaleBy8{.factor = 8.0f};
constexpr Llama3RopeScaling kScaleBy16{.factor = 16.0f};
constexpr Llama3RopeScaling kScaleBy32{.factor = 32.0f};

// Values that change logits within a few dozen tokens.
constexpr ShapeField kTinyGranite[] = {{"embedding_scale", 12.0f},
                                       {"residual_scale", 0.22f},
                                       {"attention.scale", 0.1f},
                                       {"logit_scale", 3.0f}};
constexpr ShapeField kTinyMistral3[] = {{"attention.temperature_scale", 0.5f},
                                        {"rope.scaling.type", "yarn"},
                                        {"rope.scaling.factor", 4.0f},
                                        {"rope.scaling.original_context_length", 16},
                                        {"rope.scaling.yarn_beta_fast", 16.0f},
                                        {"rope.scaling.yarn_beta_slow", 2.0f},
                                        {"rope.scaling.yarn_log_multiplier", 0.5f}};
constexpr ShapeField kTinyPhi3[] = {{"rope.scaling.original_context_length", 512},
                                    {"rope.scaling.attn_factor", 1.1f},
                                    {"attention.sliding_window", 24}};

constexpr ShapeField kTinyGemma2[] = {{"attention.sliding_window", 24},
                                      {"attn_logit_softcapping", 5.0f},
                                      {"final_logit_softcapping", 3.0f}};
constexpr ShapeField kTinyGemma3[] = {{"attention.sliding_window", 24},
                                      {"rope.scaling.type", "linear"},
                                      {"rope.scaling.factor", 8.0f}};
constexpr ShapeField kTinyOlmo3[] = {{"attention.sliding_window", 24},
                                     {"rope.scaling.type", "yarn"},
                                     {"rope.scaling.factor", 4.0f},
                                     {"rope.scaling.original_context_length", 16}};
constexpr ShapeField kTinyExaone4[] = {{"attention.sliding_window", 24}};
constexpr ShapeField kTinyQwen3Vl[] = {{"rope.dimension_sections", std::array{2, 1, 1, 4}}};
constexpr ShapeField kTinyHunyuan[] = {{"rope.scaling.alpha", 4.0f}};

constexpr ShapeField kGemma2[] = {{"attention.sliding_window", 4096},
                                  {"attn_logit_softcapping", 50.0f},
                                  {"final_logit_softcapping", 30.0f}};
constexpr ShapeField kSmallGemma3[] = {{"attention.sliding_window", 512}};
constexpr ShapeField kGemma3[] = {{"attention.sliding_window", 1024},
                                  {"rope.scaling.type", "linear"},
                                  {"rope.scaling.factor", 8.0f}};
constexpr ShapeField kOlmo3[] = {{"attention.sliding_window", 4096},
                                 {"rope.scaling.type", "yarn"},
                                 {"rope.scaling.factor", 8.0f},
                                 {"rope.scaling.original_context_length", 8192}};
constexpr ShapeField kQwen3Vl[] = {{"rope.dimension_sections", std::array{24, 20, 20, 0}}};
constexpr ShapeField kHunyuan[] = {{"rope.scaling.alpha", 1000.0f}};
constexpr ShapeField kGranite2b[] = {{"embedding_scale", 12.0f},
                                     {"residual_scale", 0.22f},
                                     {"attention.scale", 0.015625f},
                                     {"logit_scale", 8.0f}};
constexpr ShapeField kExaone32b[] = {{"attention.sliding_window", 4096}};
constexpr ShapeField kPhi4[] = {{"rope.scaling.original_context_length", 16384}};
constexpr ShapeField kMinistral8b[] = {{"attention.temperature_scale", 0.1f},
                                       {"rope.scaling.type", "yarn"},
                                       {"rope.scaling.factor", 16.0f},
                                       {"rope.scaling.original_context_length", 16384},
                                       {"rope.scaling.yarn_log_multiplier", 1.0f}};
constexpr ShapeField kPhi4Mini[] = {{"rope.scaling.original_context_length", 4096},
                                    {"rope.scaling.attn_factor", 1.1902381f},
                                    {"attention.sliding_window", 262144}};

constexpr ShapeField kTinyGptOss[] = {{"attention.sliding_window", 24},
                                      {"rope.scaling.type", "yarn"},
                                      {"rope.scaling.factor", 4.0f},
                                      {"rope.scaling.original_context_length", 16}};
constexpr ShapeField kGptOss[] = {{"attention.sliding_window", 128},
                                  {"rope.scaling.type", "yarn"},
                                  {"rope.scaling.factor", 32.0f},
                                  {"rope.scaling.original_context_length", 4096}};
constexpr ShapeField kGranite3b[] = {{"embedding_scale", 12.0f},
                                     {"residual_scale", 0.22f},
                                     {"attention.scale", 0.015625f},
                                     {"logit_scale", 6.0f}};

// Experts: how many, how many a row uses, their length, that of a shared one.
constexpr ExpertShape kTinyExperts{8, 3, 32};
constexpr ExpertShape kSmallExperts{8, 3, 256};

// clang-format off
constexpr ModelShape kShapes[] = {
    // name, architecture, layers, embd, heads, kv heads, head_dim, ff, vocab, context, tied head, rms_eps, rope base
    {"tiny-llama", "llama", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f},
    {"tiny-qwen2", "qwen2", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-6f, 1e6f},
    {"tiny-qwen3", "qwen3", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-6f, 1e6f},
    // One query head per KV head.
    {"tiny-mha", "llama", 4, 64, 4, 4, 16, 128, 288, 1024, false, 1e-5f, 10000.0f},
    // Rows are multiples of 256 values, as the K-quants need; heads are wider than n_embd / n_heads in small-qwen3.
    {"small-llama", "llama", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f},
    {"small-llama-96", "llama", 4, 256, 8, 4, 96, 512, 288, 1024, false, 1e-5f, 10000.0f},
    {"small-llama-256", "llama", 4, 256, 4, 2, 256, 512, 288, 1024, false, 1e-5f, 10000.0f},
    {"small-qwen2", "qwen2", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-6f, 1e6f},
    {"small-qwen3", "qwen3", 4, 256, 4, 2, 128, 512, 288, 1024, false, 1e-6f, 1e6f},

    {"tiny-ernie4.5", "ernie4_5", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f},
    {"small-ernie4.5", "ernie4_5", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f},
    {"tiny-granite", "granite", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f, {}, kTinyGranite},
    // As many tokens as a Granite has: no multiple of anything.
    {"small-granite", "granite", 4, 256, 4, 2, 64, 512, 291, 1024, false, 1e-5f, 10000.0f, {}, kTinyGranite},
    {"tiny-mistral3", "mistral3", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f, {}, kTinyMistral3},
    {"small-mistral3", "mistral3", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f, {}, kTinyMistral3},
    {"tiny-phi", "phi3", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f, {}, kTinyPhi3, 8},
    {"small-phi", "phi3", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f, {}, kTinyPhi3, 48},
    {"tiny-seed-oss", "seed_oss", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f},
    {"small-seed-oss", "seed_oss", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f},
    {"tiny-smollm3", "smollm3", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f},
    {"small-smollm3", "smollm3", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f},

    {"tiny-gemma2", "gemma2", 4, 64, 4, 2, 16, 128, 288, 1024, true, 1e-6f, 10000.0f, {}, kTinyGemma2},
    // As many layers as the largest model, which scales attention by another width.
    {"tiny-gemma2-deep", "gemma2", 46, 64, 4, 2, 32, 64, 288, 1024, true, 1e-6f, 10000.0f, {}, kTinyGemma2},
    {"small-gemma2", "gemma2", 4, 256, 4, 2, 64, 512, 288, 1024, true, 1e-6f, 10000.0f, {}, kTinyGemma2},
    {"tiny-gemma3", "gemma3", 6, 64, 4, 2, 16, 128, 288, 1024, true, 1e-6f, 1e6f, {}, kTinyGemma3},
    {"tiny-gemma3-deep", "gemma3", 62, 64, 4, 2, 32, 64, 288, 1024, true, 1e-6f, 1e6f, {}, kTinyGemma3},
    {"small-gemma3", "gemma3", 6, 256, 4, 1, 64, 512, 288, 1024, true, 1e-6f, 1e6f, {}, kTinyGemma3},
    {"tiny-olmo2", "olmo2", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-6f, 500000.0f, {}, kTinyOlmo3},
    {"small-olmo2", "olmo2", 4, 256, 4, 4, 64, 512, 288, 1024, false, 1e-6f, 500000.0f, {}, kTinyOlmo3},
    {"tiny-glm4", "glm4", 4, 64, 4, 2, 16, 128, 288, 1024, false, 1e-5f, 10000.0f, {}, {}, 8},
    {"small-glm4", "glm4", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f, {}, {}, 32},
    {"tiny-exaone4", "exaone4", 4, 64, 4, 2, 16, 128, 288, 1024, true, 1e-5f, 1e6f},
    {"tiny-exaone4-windows", "exaone4", 64, 64, 4, 2, 16, 64, 288, 1024, false, 1e-5f, 1e6f, {}, kTinyExaone4},
    {"small-exaone4", "exaone4", 4, 256, 4, 2, 64, 512, 288, 1024, true, 1e-5f, 1e6f},
    {"tiny-qwen3vl", "qwen3vl", 4, 64, 4, 2, 16, 128, 288, 1024, true, 1e-6f, 5e6f, {}, kTinyQwen3Vl},
    {"small-qwen3vl", "qwen3vl", 4, 256, 4, 2, 128, 512, 288, 1024, true, 1e-6f, 5e6f, {}, kQwen3Vl},
    {"tiny-hunyuan-dense", "hunyuan-dense", 4, 64, 4, 2, 16, 128, 288, 1024, true, 1e-5f, 10000.0f, {}, kTinyHunyuan},
    {"small-hunyuan-dense", "hunyuan-dense", 4, 256, 4, 2, 64, 512, 288, 1024, true, 1e-5f, 10000.0f, {}, kTinyHunyuan},

    {"tiny-qwen3moe", "qwen3moe", 4, 64, 4, 2, 16, 96, 288, 1024, false, 1e-6f, 1e6f, {}, {}, 0, kTinyExperts},
    {"small-qwen3moe", "qwen3moe", 4, 256, 4, 2, 128, 768, 288, 1024, false, 1e-6f, 1e6f, {}, {}, 0, kSmallExperts},
    {"tiny-gpt-oss", "gpt-oss", 4, 64, 4, 2, 32, 32, 288, 1024, false, 1e-5f, 150000.0f, {}, kTinyGptOss, 0, kTinyExperts},
    {"small-gpt-oss", "gpt-oss", 4, 256, 8, 2, 64, 256, 288, 1024, false, 1e-5f, 150000.0f, {}, kTinyGptOss, 0, kSmallExperts},
    {"tiny-mixtral", "llama", 4, 64, 4, 2, 16, 96, 288, 1024, false, 1e-5f, 1e6f, {}, {}, 0, {8, 2}},
    {"small-mixtral", "llama", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 1e6f, {}, {}, 0, {8, 2}},
    {"tiny-mistral3-moe", "mistral3", 4, 64, 4, 2, 16, 96, 288, 1024, false, 1e-5f, 10000.0f, {}, kTinyMistral3, 0, {8, 2}},
    {"small-mistral3-moe", "mistral3", 4, 256, 4, 2, 64, 512, 288, 1024, false, 1e-5f, 10000.0f, {}, kTinyMistral3, 0, {8, 2}},
    {"tiny-granitemoe", "granitemoe", 4, 64, 4, 2, 16, 32, 288, 1024, false, 1e-6f, 10000.0f, {}, kTinyGranite, 0, {8, 3, 0, 64}},
    {"small-granitemoe", "granitemoe", 4, 256, 4, 2, 64, 256, 288, 1024, false, 1e-6f, 10000.0f, {}, kTinyGranite, 0, {8, 3, 0, 512}},
    {"tiny-qwen3vlmoe", "qwen3vlmoe", 4, 64, 4, 2, 16, 96, 288, 1024, false, 1e-6f, 5e6f, {}, kTinyQwen3Vl, 0, kTinyExperts},
    {"small-qwen3vlmoe", "qwen3vlmoe", 4, 256, 4, 2, 128, 768, 288, 1024, false, 1e-6f, 5e6f, {}, kQwen3Vl, 0, kSmallExperts},

    {"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, true, 1e-5f, 100000.0f},

    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, true, 1e-5f, 500000.0f, kScaleBy32},
    {"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, true, 1e-5f, 500000.0f, kScaleBy32},
    {"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, false, 1e-5f, 500000.0f, kScaleBy8},
    {"llama-3.1-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072, false, 1e-5f, 500000.0f, kScaleBy8},

    {"qwen2.5-0.5b", "qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, true, 1e-6f, 1e6f},
    {"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, true, 1e-6f, 1e6f},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, false, 1e-6f, 1e6f},
    {"qwen3-14b", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960, false, 1e-6f, 1e6f},
    {"qwen3-32b", "qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 40960, false, 1e-6f, 1e6f},

    {"gemma-2-2b", "gemma2", 26, 2304, 8, 4, 256, 9216, 256000, 8192, true, 1e-6f, 10000.0f, {}, kGemma2},
    {"gemma-3-270m", "gemma3", 18, 640, 4, 1, 256, 2048, 262144, 32768, true, 1e-6f, 1e6f, {}, kSmallGemma3},
    {"gemma-3-1b", "gemma3", 26, 1152, 4, 1, 256, 6912, 262144, 32768, true, 1e-6f, 1e6f, {}, kSmallGemma3},
    {"gemma-3-4b", "gemma3", 34, 2560, 8, 4, 256, 10240, 262208, 131072, true, 1e-6f, 1e6f, {}, kGemma3},
    {"gemma-3-27b", "gemma3", 62, 5376, 32, 16, 128, 21504, 262208, 131072, true, 1e-6f, 1e6f, {}, kGemma3},
    {"olmo-2-7b", "olmo2", 32, 4096, 32, 32, 128, 11008, 100352, 4096, false, 1e-6f, 500000.0f},
    {"olmo-3-7b", "olmo2", 32, 4096, 32, 32, 128, 11008, 100278, 65536, false, 1e-6f, 500000.0f, {}, kOlmo3},
    {"glm-4-9b", "glm4", 40, 4096, 32, 2, 128, 13696, 151552, 32768, false, 1e-5f, 10000.0f, {}, {}, 64},
    {"exaone-4.0-1.2b", "exaone4", 30, 2048, 32, 8, 64, 4096, 102400, 65536, true, 1e-5f, 1e6f, kScaleBy16},
    // Only with all of its layers it has windows.
    {"exaone-4.0-32b", "exaone4", 64, 5120, 40, 8, 128, 27392, 102400, 131072, false, 1e-5f, 1e6f, kScaleBy16, kExaone32b},
    {"qwen3-vl-4b", "qwen3vl", 36, 2560, 32, 8, 128, 9728, 151936, 262144, true, 1e-6f, 5e6f, {}, kQwen3Vl},
    {"hunyuan-1.8b", "hunyuan-dense", 32, 2048, 16, 4, 128, 6144, 120818, 262144, true, 1e-5f, 10000.0f, {}, kHunyuan},
    {"ernie-4.5-0.3b", "ernie4_5", 18, 1024, 16, 2, 128, 3072, 103424, 131072, true, 1e-5f, 500000.0f},
    {"granite-3.3-2b", "granite", 40, 2048, 32, 8, 64, 8192, 49159, 131072, true, 1e-5f, 1e7f, {}, kGranite2b},
    {"ministral-3-8b", "mistral3", 34, 4096, 32, 8, 128, 14336, 131072, 262144, false, 1e-5f, 1e6f, {}, kMinistral8b},
    {"phi-4", "phi3", 40, 5120, 40, 10, 128, 17920, 100352, 16384, false, 1e-5f, 250000.0f, {}, kPhi4},
    {"phi-4-mini", "phi3", 32, 3072, 24, 8, 128, 8192, 200064, 131072, true, 1e-5f, 10000.0f, {}, kPhi4Mini, 96},
    {"seed-oss-36b", "seed_oss", 64, 5120, 80, 8, 128, 27648, 155136, 524288, false, 1e-6f, 1e7f},
    {"qwen3-30b-a3b", "qwen3moe", 48, 2048, 32, 4, 128, 6144, 151936, 40960, false, 1e-6f, 1e6f, {}, {}, 0, {128, 8, 768}},
    {"gpt-oss-20b", "gpt-oss", 24, 2880, 64, 8, 64, 2880, 201088, 131072, false, 1e-5f, 150000.0f, {}, kGptOss, 0, {32, 4, 2880}},
    {"gpt-oss-120b", "gpt-oss", 36, 2880, 64, 8, 64, 2880, 201088, 131072, false, 1e-5f, 150000.0f, {}, kGptOss, 0, {128, 4, 2880}},
    {"mixtral-8x7b", "llama", 32, 4096, 32, 8, 128, 14336, 32000, 32768, false, 1e-5f, 1e6f, {}, {}, 0, {8, 2}},
    {"granite-3.1-3b-a800m", "granitemoe", 32, 1536, 24, 8, 64, 512, 49155, 131072, true, 1e-6f, 1e7f, {}, kGranite3b, 0, {40, 8}},
    {"qwen3-vl-30b-a3b", "qwen3vlmoe", 48, 2048, 32, 4, 128, 6144, 151936, 262144, false, 1e-6f, 5e6f, {}, kQwen3Vl, 0, {128, 8, 768}},
    {"smollm3-3b", "smollm3", 36, 2048, 16, 4, 128, 11008, 128256, 65536, true, 1e-6f, 5e6f},
};
// clang-format on

double rope_divisor(double frequency, const Llama3RopeScaling& scaling) {
    const double wavelength = 2.0 * std::numbers::pi / frequency;  // in positions
    const double turns = scaling.n_ctx_orig / wavelength;          // within the original context
    if (turns > scaling.high_freq_factor) {
        return 1.0;
    }
    if (turns < scaling.low_freq_factor) {
        return scaling.factor;
    }
    const double kept =
        (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
    return 1.0 / ((1.0 - kept) / scaling.factor + kept);
}

}  // namespace

std::span<const ModelShape> known_shapes() {
    return kShapes;
}

std::string shape_names() {
    return join(kShapes, ", ", &ModelShape::name);
}

const ModelShape& find_shape(std::string_view name) {
    const std::string_view full_name = name == "tiny" ? "tiny-llama" : name;
    const auto shape = std::ranges::find(kShapes, full_name, &ModelShape::name);
    if (shape == std::end(kShapes)) {
        fail("--shape: expected one of ", shape_names(), "; found '", name, "'");
    }
    return *shape;
}

std::vector<float> rope_frequency_divisors(const ModelShape& shape) {
    if (!shape.rope_scaling) {
        return {};
    }
    std::vector<float> divisors;
    for (int channel = 0; channel < shape.head_dim; channel += 2) {
        const double frequency =
            std::pow(double(shape.rope_freq_base), -double(channel) / shape.head_dim);
        divisors.push_back(float(rope_divisor(frequency, *shape.rope_scaling)));
    }
    return divisors;
}

}  // namespace knap
