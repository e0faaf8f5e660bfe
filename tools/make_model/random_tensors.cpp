#include "tools/make_model/random_tensors.h"

#include <cmath>
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

RandomTensor norm(std::string name, std::int64_t n) {
    return {.name = std::move(name), .n_in = n, .mean = 1.0f, .deviation = 0.1f};
}

RandomTensor bias(std::string name, std::int64_t n) {
    return {.name = std::move(name), .n_in = n, .deviation = 0.05f};
}

void add_attention(std::vector<RandomTensor>& tensors,
                   const ModelShape& shape,
                   const WeightRecipe& recipe,
                   int layer) {
    const std::string prefix = concat("blk.", layer, ".");
    const ggml_type v_type = recipe.sensitive_type(layer, shape.n_layers);
    tensors.push_back(norm(prefix + "attn_norm.weight", shape.n_embd));
    tensors.push_back(
        matrix(prefix + "attn_q.weight", recipe.base, shape.n_embd, shape.n_embd_q()));
    tensors.push_back(
        matrix(prefix + "attn_k.weight", recipe.base, shape.n_embd, shape.n_embd_kv()));
    tensors.push_back(matrix(prefix + "attn_v.weight", v_type, shape.n_embd, shape.n_embd_kv()));
    if (shape.architecture == "qwen2") {
        tensors.push_back(bias(prefix + "attn_q.bias", shape.n_embd_q()));
        tensors.push_back(bias(prefix + "attn_k.bias", shape.n_embd_kv()));
        tensors.push_back(bias(prefix + "attn_v.bias", shape.n_embd_kv()));
    }
    if (shape.architecture == "qwen3") {
        tensors.push_back(norm(prefix + "attn_q_norm.weight", shape.head_dim));
        tensors.push_back(norm(prefix + "attn_k_norm.weight", shape.head_dim));
    }
    tensors.push_back(
        matrix(prefix + "attn_output.weight", recipe.base, shape.n_embd_q(), shape.n_embd));
}

void add_mlp(std::vector<RandomTensor>& tensors,
             const ModelShape& shape,
             const WeightRecipe& recipe,
             int layer) {
    const std::string prefix = concat("blk.", layer, ".");
    const ggml_type down_type = recipe.sensitive_type(layer, shape.n_layers);
    tensors.push_back(norm(prefix + "ffn_norm.weight", shape.n_embd));
    tensors.push_back(matrix(prefix + "ffn_gate.weight", recipe.base, shape.n_embd, shape.n_ff));
    tensors.push_back(matrix(prefix + "ffn_up.weight", recipe.base, shape.n_embd, shape.n_ff));
    tensors.push_back(matrix(prefix + "ffn_down.weight", down_type, shape.n_ff, shape.n_embd));
}

void add_ends(std::vector<RandomTensor>& tensors,
              const ModelShape& shape,
              const WeightRecipe& recipe) {
    tensors.push_back(matrix("token_embd.weight", recipe.embedding, shape.n_embd, shape.n_vocab));
    tensors.push_back(norm("output_norm.weight", shape.n_embd));
    if (!shape.has_tied_head) {
        tensors.push_back(matrix("output.weight", recipe.head, shape.n_embd, shape.n_vocab));
    }
    if (shape.rope_scaling) {
        tensors.push_back({.name = "rope_freqs.weight",
                           .n_in = shape.head_dim / 2,
                           .values = rope_frequency_divisors(shape)});
    }
}

void check_rows(const RandomTensor& tensor, const ModelShape& shape) {
    const std::int64_t block = ggml_blck_size(tensor.type);
    if (tensor.n_in % block != 0) {
        fail("type ", type_label(tensor.type), " stores blocks of ", block, " values, but ",
             tensor.name, " of shape ", shape.name, " has rows of ", tensor.n_in,
             "; choose another type or a shape with wider rows, such as ",
             shape.architecture == "qwen3" ? "small-qwen3" : "small-llama");
    }
}

}  // namespace

std::vector<RandomTensor> declare_random_tensors(const ModelShape& shape,
                                                 const WeightRecipe& recipe) {
    std::vector<RandomTensor> tensors;
    add_ends(tensors, shape, recipe);
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        add_attention(tensors, shape, recipe, layer);
        add_mlp(tensors, shape, recipe, layer);
    }
    for (const RandomTensor& tensor : tensors) {
        check_rows(tensor, shape);
    }
    return tensors;
}

}  // namespace knap
