#include "tools/make_model/shapes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"

namespace knap {

namespace {

constexpr Llama3RopeScaling kScaleBy8{.factor = 8.0f};
constexpr Llama3RopeScaling kScaleBy32{.factor = 32.0f};

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
    {"small-qwen3", "qwen3", 4, 256, 4, 2, 128, 512, 288, 1024, false, 1e-6f, 1e6f},

    {"smollm2-135m", "llama", 30, 576, 9, 3, 64, 1536, 49152, 8192, true, 1e-5f, 100000.0f},

    {"llama-3.2-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, true, 1e-5f, 500000.0f, kScaleBy32},
    {"llama-3.2-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, true, 1e-5f, 500000.0f, kScaleBy32},
    {"llama-3.1-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, false, 1e-5f, 500000.0f, kScaleBy8},
    {"llama-3.1-70b", "llama", 80, 8192, 64, 8, 128, 28672, 128256, 131072, false, 1e-5f, 500000.0f, kScaleBy8},

    {"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, true, 1e-6f, 1e6f},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, false, 1e-6f, 1e6f},
    {"qwen3-14b", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960, false, 1e-6f, 1e6f},
    {"qwen3-32b", "qwen3", 64, 5120, 64, 8, 128, 25600, 151936, 40960, false, 1e-6f, 1e6f},
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
