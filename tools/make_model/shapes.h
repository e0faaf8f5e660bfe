// The model shapes that knap can write with random weights: small ones for tests, and those of
// known checkpoints for measuring costs without their weights. A shape gives everything but the
// weight types.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace knap {

// How Llama 3.1 and later stretch RoPE to longer contexts: slow channels turn `factor` times
// slower, fast ones are unchanged, and those between are interpolated. A file stores it as one
// divisor per channel pair.
struct Llama3RopeScaling {
    float factor = 8.0f;
    float low_freq_factor = 1.0f;
    float high_freq_factor = 4.0f;
    int n_ctx_orig = 8192;
};

// A field of the architecture beyond those that all have.
struct ShapeField {
    const char* name;
    std::variant<int, float, const char*, std::array<std::int32_t, 4>> value;
};

// The experts of every layer.
struct ExpertShape {
    int n_experts = 0;  // 0: layers have one MLP
    int n_used = 0;
    int n_ff = 0;         // of one expert; 0: that of the shape
    int n_ff_shared = 0;  // of an expert that every row uses; 0: none
};

struct ModelShape {
    std::string_view name;
    std::string_view architecture;  // as in model/architectures
    int n_layers;
    int n_embd;
    int n_heads;
    int n_kv_heads;
    int head_dim;
    int n_ff;
    int n_vocab;
    int n_ctx_train;
    bool has_tied_head;
    float rms_eps;
    float rope_freq_base;
    std::optional<Llama3RopeScaling> rope_scaling = std::nullopt;
    std::span<const ShapeField> fields = {};
    int n_rot = 0;  // channels of a head that rotate; 0: all
    ExpertShape experts = {};

    int n_embd_q() const { return n_heads * head_dim; }
    int n_embd_kv() const { return n_kv_heads * head_dim; }
    int n_ff_expert() const { return experts.n_ff > 0 ? experts.n_ff : n_ff; }
};

std::span<const ModelShape> known_shapes();
std::string shape_names();  // for messages and help: "tiny-llama, tiny-qwen2, ..."

// The shape called `name`; "tiny" is short for "tiny-llama". Throws knap::Error that lists the
// names if there is none.
const ModelShape& find_shape(std::string_view name);

// The tensor rope_freqs.weight: {head_dim / 2}, the divisor of each pair's frequency. Empty without
// scaling.
std::vector<float> rope_frequency_divisors(const ModelShape& shape);

}  // namespace knap
