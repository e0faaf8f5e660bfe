#include "tools/make_model/random_tensors.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "model/weight_type.h"

namespace knap {

namespace {

// The variance 1 / n_in keeps activations near unit size from layer to layer.
RandomTensor matrix(std::string name, ggml_type type, std::int64_t n_in, std::int64_t n_out) {
    return {.name = std::move(name),
            .type = type,
            .n_in = n_in,
            .n_rows = n_out,
            .deviation = 1.0f / std::sqrt(float(n_in))};
}

// A matrix of every expert.
RandomTensor matrices(
    std::string name, ggml_type type, std::int64_t n_in, std::int64_t n_out, int n_experts) {
    RandomTensor tensor = matrix(std::move(name), type, n_in, n_out * n_experts);
    tensor.n_planes = n_experts;
    return tensor;
}

RandomTensor norm(std::string name, std::int64_t n) {
    return {.name = std::move(name), .n_in = n, .mean = 1.0f, .deviation = 0.1f};
}

RandomTensor bias(std::string name, std::int64_t n, int n_experts = 1) {
    return {.name = std::move(name), .n_in = n, .n_rows = n_experts, .deviation = 0.05f};
}

// How the layers of an architecture are stored.
struct LayerStyle {
    bool fuses_qkv = false;
    bool fuses_gate = false;  // with up
    bool has_biases = false;  // on q, k and v
    bool has_sinks = false;   // and biases everywhere
    bool has_pre_norms = true;
    bool has_post_norms = false;
    bool norms_heads = false;
    bool norms_rows = false;  // of queries and keys
    const char* mlp_norm = "ffn_norm.weight";
};

LayerStyle style_of(std::string_view architecture) {
    constexpr std::pair<std::string_view, LayerStyle> kStyles[] = {
        {"exaone4", {.has_pre_norms = false, .has_post_norms = true, .norms_heads = true}},
        {"gemma2", {.has_post_norms = true}},
        {"gemma3", {.has_post_norms = true, .norms_heads = true}},
        {"glm4", {.fuses_gate = true, .has_biases = true, .has_post_norms = true}},
        {"gpt-oss",
         {.has_biases = true, .has_sinks = true, .mlp_norm = "post_attention_norm.weight"}},
        {"hunyuan-dense", {.norms_heads = true}},
        {"olmo2", {.has_pre_norms = false, .has_post_norms = true, .norms_rows = true}},
        {"phi3", {.fuses_qkv = true, .fuses_gate = true}},
        {"qwen2", {.has_biases = true}},
        {"qwen3", {.norms_heads = true}},
        {"qwen3moe", {.norms_heads = true}},
        {"qwen3vl", {.norms_heads = true}},
        {"qwen3vlmoe", {.norms_heads = true}},
        {"seed_oss", {.has_biases = true, .mlp_norm = "post_attention_norm.weight"}},
    };
    const auto* style =
        std::ranges::find(kStyles, architecture, &std::pair<std::string_view, LayerStyle>::first);
    return style != std::end(kStyles) ? style->second : LayerStyle{};
}

// Divisors for contexts up to the original one, and beyond.
void add_long_and_short(std::vector<RandomTensor>& tensors, const ModelShape& shape) {
    std::vector<float> divisors(static_cast<std::size_t>(shape.n_rot / 2), 1.0f);
    tensors.push_back(
        {.name = "rope_factors_short.weight", .n_in = shape.n_rot / 2, .values = divisors});
    for (std::size_t i = 0; i < divisors.size(); ++i) {
        divisors[i] += static_cast<float>(i);
    }
    tensors.push_back({.name = "rope_factors_long.weight",
                       .n_in = shape.n_rot / 2,
                       .values = std::move(divisors)});
}

void add_attention(std::vector<RandomTensor>& tensors,
                   const ModelShape& shape,
                   const WeightRecipe& recipe,
                   int layer) {
    const std::string prefix = concat("blk.", layer, ".");
    const LayerStyle style = style_of(shape.architecture);
    const ggml_type v_type = recipe.sensitive_type(layer, shape.n_layers);
    const int n_q = shape.n_embd_q();
    const int n_kv = shape.n_embd_kv();
    if (style.has_pre_norms) {
        tensors.push_back(norm(prefix + "attn_norm.weight", shape.n_embd));
    }
    if (style.fuses_qkv) {
        tensors.push_back(matrix(prefix + "attn_qkv.weight", v_type, shape.n_embd, n_q + 2 * n_kv));
    } else {
        tensors.push_back(matrix(prefix + "attn_q.weight", recipe.base, shape.n_embd, n_q));
        tensors.push_back(matrix(prefix + "attn_k.weight", recipe.base, shape.n_embd, n_kv));
        tensors.push_back(matrix(prefix + "attn_v.weight", v_type, shape.n_embd, n_kv));
    }
    if (style.has_biases) {
        tensors.push_back(bias(prefix + "attn_q.bias", n_q));
        tensors.push_back(bias(prefix + "attn_k.bias", n_kv));
        tensors.push_back(bias(prefix + "attn_v.bias", n_kv));
    }
    if (style.norms_heads || style.norms_rows) {
        tensors.push_back(
            norm(prefix + "attn_q_norm.weight", style.norms_rows ? n_q : shape.head_dim));
        tensors.push_back(
            norm(prefix + "attn_k_norm.weight", style.norms_rows ? n_kv : shape.head_dim));
    }
    tensors.push_back(matrix(prefix + "attn_output.weight", recipe.base, n_q, shape.n_embd));
    if (style.has_sinks) {
        tensors.push_back(bias(prefix + "attn_output.bias", shape.n_embd));
        tensors.push_back(
            {.name = prefix + "attn_sinks.weight", .n_in = shape.n_heads, .deviation = 1.0f});
    }
    if (style.has_post_norms) {
        tensors.push_back(norm(prefix + "post_attention_norm.weight", shape.n_embd));
    }
}

// A gate, an up and a down matrix with these ends to their names.
template <typename Make>
void add_matrices(std::vector<RandomTensor>& tensors,
                  const std::string& prefix,
                  const char* kind,
                  Make make) {
    for (const char* name : {"ffn_gate", "ffn_up", "ffn_down"}) {
        tensors.push_back(make(concat(prefix, name, kind), std::string_view(name) == "ffn_down"));
    }
}

void add_experts(std::vector<RandomTensor>& tensors,
                 const ModelShape& shape,
                 const WeightRecipe& recipe,
                 int layer) {
    const std::string prefix = concat("blk.", layer, ".");
    const LayerStyle style = style_of(shape.architecture);
    const ggml_type down_type = recipe.sensitive_type(layer, shape.n_layers);
    const int n_experts = shape.experts.n_experts;
    const int n_ff = shape.n_ff_expert();
    tensors.push_back(norm(prefix + style.mlp_norm, shape.n_embd));
    // Wide margins between experts: choices that rounding decides are rare.
    constexpr float kMargin = 4;
    tensors.push_back(
        matrix(prefix + "ffn_gate_inp.weight", GGML_TYPE_F32, shape.n_embd, n_experts));
    tensors.back().deviation *= kMargin;
    add_matrices(tensors, prefix, "_exps.weight", [&](std::string name, bool is_down) {
        return is_down ? matrices(std::move(name), down_type, n_ff, shape.n_embd, n_experts)
                       : matrices(std::move(name), recipe.base, shape.n_embd, n_ff, n_experts);
    });
    if (style.has_sinks) {
        tensors.push_back(bias(prefix + "ffn_gate_inp.bias", n_experts));
        add_matrices(tensors, prefix, "_exps.bias", [&](std::string name, bool is_down) {
            return bias(std::move(name), is_down ? shape.n_embd : n_ff, n_experts);
        });
    }
    if (const int n_shared = shape.experts.n_ff_shared; n_shared > 0) {
        add_matrices(tensors, prefix, "_shexp.weight", [&](std::string name, bool is_down) {
            return is_down ? matrix(std::move(name), down_type, n_shared, shape.n_embd)
                           : matrix(std::move(name), recipe.base, shape.n_embd, n_shared);
        });
    }
}

void add_mlp(std::vector<RandomTensor>& tensors,
             const ModelShape& shape,
             const WeightRecipe& recipe,
             int layer) {
    const std::string prefix = concat("blk.", layer, ".");
    const LayerStyle style = style_of(shape.architecture);
    const ggml_type down_type = recipe.sensitive_type(layer, shape.n_layers);
    const int n_up = style.fuses_gate ? 2 * shape.n_ff : shape.n_ff;
    if (style.has_pre_norms) {
        tensors.push_back(norm(prefix + style.mlp_norm, shape.n_embd));
    }
    if (!style.fuses_gate) {
        tensors.push_back(
            matrix(prefix + "ffn_gate.weight", recipe.base, shape.n_embd, shape.n_ff));
    }
    tensors.push_back(matrix(prefix + "ffn_up.weight", recipe.base, shape.n_embd, n_up));
    tensors.push_back(matrix(prefix + "ffn_down.weight", down_type, shape.n_ff, shape.n_embd));
    if (style.has_post_norms) {
        tensors.push_back(norm(prefix + "post_ffw_norm.weight", shape.n_embd));
    }
}

void add_ends(std::vector<RandomTensor>& tensors,
              const ModelShape& shape,
              const WeightRecipe& recipe) {
    tensors.push_back(matrix("token_embd.weight", recipe.embedding, shape.n_embd, shape.n_vocab));
    tensors.push_back(norm("output_norm.weight", shape.n_embd));
    if (!shape.has_tied_head) {
        tensors.push_back(matrix("output.weight", recipe.head, shape.n_embd, shape.n_vocab));
    }
    if (shape.architecture == "phi3") {
        add_long_and_short(tensors, shape);
    }
    if (shape.rope_scaling) {
        tensors.push_back({.name = "rope_freqs.weight",
                           .n_in = shape.head_dim / 2,
                           .values = rope_frequency_divisors(shape)});
    }
}

// Of the same architecture, if there is one.
std::string_view wider_shape(const ModelShape& shape) {
    const auto found = std::ranges::find_if(known_shapes(), [&](const ModelShape& other) {
        return other.architecture == shape.architecture && other.name.starts_with("small-");
    });
    return found != known_shapes().end() ? found->name : "small-llama";
}

void check_rows(const RandomTensor& tensor, const ModelShape& shape) {
    const std::int64_t block = ggml_blck_size(tensor.type);
    if (tensor.n_in % block != 0) {
        fail("type ", type_label(tensor.type), " stores blocks of ", block, " values, but ",
             tensor.name, " of shape ", shape.name, " has rows of ", tensor.n_in,
             "; choose another type or a shape with wider rows, such as ", wider_shape(shape));
    }
}

}  // namespace

std::vector<RandomTensor> declare_random_tensors(const ModelShape& shape,
                                                 const WeightRecipe& recipe) {
    std::vector<RandomTensor> tensors;
    add_ends(tensors, shape, recipe);
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        add_attention(tensors, shape, recipe, layer);
        (shape.experts.n_experts > 0 ? add_experts : add_mlp)(tensors, shape, recipe, layer);
    }
    for (const RandomTensor& tensor : tensors) {
        check_rows(tensor, shape);
    }
    return tensors;
}

}  // namespace knap
