#include "graph/blocks.h"

#include <array>

#include "graph/experts/expert_nodes.h"
#include "graph/kernel_heads.h"
#include "graph/products.h"
#include "graph/rotation.h"

namespace knap {
namespace {

// Names a node "l12.attn.out", so that a graph dump can be read.
ggml_tensor* named(ggml_tensor* tensor, int layer, const char* what) {
    ggml_format_name(tensor, "l%d.%s", layer, what);
    return tensor;
}

ggml_tensor* add_bias(ggml_context* ctx, ggml_tensor* y, ggml_tensor* bias) {
    return bias != nullptr ? ggml_add(ctx, y, bias) : y;
}

ggml_tensor* scaled(ggml_context* ctx, ggml_tensor* x, float scale) {
    return scale != 1.0f ? ggml_scale(ctx, x, scale) : x;
}

ggml_tensor* build_norm(const BlockContext& block, ggml_tensor* x, ggml_tensor* weight) {
    return ProductInput::normed(x, weight, block.config.rms_eps).floats(block.ctx);
}

// c tanh(x / c)
ggml_tensor* capped(ggml_context* ctx, ggml_tensor* x, float cap) {
    return cap == 0.0f ? x : ggml_scale(ctx, ggml_tanh(ctx, ggml_scale(ctx, x, 1.0f / cap)), cap);
}

// What a product goes through before it is added to the stream.
struct OutputWeights {
    ggml_tensor* weight;
    ggml_tensor* bias;
    ggml_tensor* post_norm;
};

// stream + scale norm(weight x + bias): a module's result added to what runs past it.
ggml_tensor* build_output(const BlockContext& block,
                          const OutputWeights& output,
                          ProductInput& x,
                          ggml_tensor* stream) {
    ggml_context* ctx = block.ctx;
    const float scale = block.config.residual_scale;
    if (output.bias == nullptr && output.post_norm == nullptr && scale == 1.0f) {
        return build_product(ctx, output.weight, x, stream);
    }
    ggml_tensor* result = add_bias(ctx, build_product(ctx, output.weight, x), output.bias);
    if (output.post_norm != nullptr) {
        result = build_norm(block, result, output.post_norm);
    }
    return ggml_add(ctx, stream, scaled(ctx, result, scale));
}

// The rows of the stream as a module takes them: normalised, if it has a norm.
ProductInput module_input(const BlockContext& block, ggml_tensor* stream, ggml_tensor* norm) {
    return norm != nullptr ? ProductInput::normed(stream, norm, block.config.rms_eps)
                           : ProductInput::rows(stream);
}

// Products of the same rows with several matrices, each f32 [n_out, n_rows]: views of one tensor
// where one node makes them all.
template <std::size_t N>
std::array<ggml_tensor*, N> build_products(ggml_context* ctx,
                                           const std::array<ggml_tensor*, N>& weights,
                                           const std::array<ggml_tensor*, N>& biases,
                                           ProductInput& x) {
    std::array<ggml_tensor*, N> results;
    ggml_tensor* joined =
        can_join_products(weights) ? build_joined_product(ctx, weights, x) : nullptr;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < N; ++i) {
        results[i] = joined == nullptr ? build_product(ctx, weights[i], x)
                                       : ggml_view_2d(ctx, joined, weights[i]->ne[1], joined->ne[1],
                                                      joined->nb[1], offset);
        results[i] = add_bias(ctx, results[i], biases[i]);
        offset += static_cast<std::size_t>(weights[i]->ne[1]) * sizeof(float);
    }
    return results;
}

// [n_heads * head_dim, n_rows], whose rows may lie apart, as [head_dim, n_heads, n_rows].
ggml_tensor* as_heads(const BlockContext& block, ggml_tensor* x) {
    const std::int64_t head_dim = block.config.head_dim;
    return ggml_view_3d(block.ctx, x, head_dim, x->ne[0] / head_dim, x->ne[1],
                        ggml_row_size(x->type, head_dim), x->nb[1], 0);
}

// [n_heads * head_dim, n_rows], normalised where the model does: each head or the whole row.
ggml_tensor* build_normed_heads(const BlockContext& block, ggml_tensor* x, ggml_tensor* norm) {
    if (norm == nullptr) {
        return x;
    }
    if (block.config.head_norm == HeadNorm::whole_row) {
        return build_norm(block, x, norm);
    }
    return ggml_reshape_2d(block.ctx, build_norm(block, as_heads(block, x), norm), x->ne[0],
                           x->ne[1]);
}

// [head_dim, n_heads, n_rows]
ggml_tensor* build_rotated_heads(const BlockContext& block, int layer, ggml_tensor* x) {
    const Rotation rotation = block.config.layer(layer).rotation;
    ggml_tensor* heads = as_heads(block, x);
    if (rotation == Rotation::none) {
        return ggml_is_contiguous(heads) ? heads : ggml_cont(block.ctx, heads);
    }
    return build_rotation(block.ctx, block.config.rope_of(rotation), heads, block.positions,
                          block.divisors);
}

ggml_tensor* scale_queries(const BlockContext& block, ggml_tensor* q) {
    return block.query_scales != nullptr ? ggml_mul(block.ctx, q, block.query_scales) : q;
}

// The rotations that our kernel applies to the heads of a layer.
ggml_tensor* turns_for(const BlockContext& block, int layer) {
    const Rotation rotation = block.config.layer(layer).rotation;
    return rotation == Rotation::none    ? block.unit_pairs
           : rotation == Rotation::local ? block.local_rope_table
                                         : block.rope_table;
}

// From the products q, k and v, each [n_heads * head_dim, n_rows] for its number of heads: keys and
// values go to the cache, and the rotated queries [head_dim, n_heads, n_rows] are returned. Rows
// may lie apart.
ggml_tensor* build_heads(
    const BlockContext& block, int layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    // Our node rotates and stores at once, so norms in between leave the rotation to ggml.
    const bool norms_last =
        weights.q_norm != nullptr && block.config.head_norm == HeadNorm::after_rotation;
    if (!norms_last) {
        q = build_normed_heads(block, q, weights.q_norm);
        k = build_normed_heads(block, k, weights.k_norm);
    }
    if (is_tiled(block.cache.layout()) && !norms_last) {
        q = named(build_kernel_heads(block.ctx, block.config, block.cache, layer, {q, k, v},
                                     turns_for(block, layer), block.slots),
                  layer, "attn.q");
        ggml_build_forward_expand(block.graph, q);
        return scale_queries(block, q);
    }
    q = named(build_rotated_heads(block, layer, q), layer, "attn.q");
    k = named(build_rotated_heads(block, layer, k), layer, "attn.k");
    if (norms_last) {
        q = build_norm(block, q, weights.q_norm);
        k = build_norm(block, k, weights.k_norm);
    }
    // Kept in this order in the graph: the three products read the same activations while they are
    // warm.
    ggml_build_forward_expand(block.graph, q);
    k = ggml_reshape_2d(block.ctx, k, block.config.n_embd_kv(), k->ne[2]);
    if (is_tiled(block.cache.layout())) {
        ggml_tensor* rows = ggml_reshape_2d(block.ctx, q, block.config.n_embd_q(), q->ne[2]);
        q = build_kernel_heads(block.ctx, block.config, block.cache, layer, {rows, k, v},
                               block.unit_pairs, block.slots);
        ggml_build_forward_expand(block.graph, q);
        return scale_queries(block, q);
    }
    v = ggml_is_contiguous(v) ? v : ggml_cont(block.ctx, v);
    block.cache.write(block.ctx, block.graph, layer, k, v, block.slots);
    return scale_queries(block, q);
}

// activation(gate) * up of the rows of `x`.
ProductInput build_gates(const BlockContext& block, const LayerWeights& weights, ProductInput& x) {
    const auto [gate, up] = build_products<2>(block.ctx, {weights.ffn_gate, weights.ffn_up},
                                              {weights.ffn_gate_b, weights.ffn_up_b}, x);
    return ProductInput::gated(gate, up, block.config.activation);
}

// The experts that rows have chosen, and the one that every row uses, added to the stream.
ggml_tensor* build_expert_output(
    const BlockContext& block, int layer, int n_experts, ProductInput& x, ggml_tensor* stream) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = block.ctx;
    ggml_tensor* sum = build_experts(ctx, block.config, layer, weights, n_experts, x);
    if (weights.ffn_down != nullptr) {
        ProductInput hidden = build_gates(block, weights, x);
        ggml_tensor* shared = build_product(ctx, weights.ffn_down, hidden);
        sum = ggml_add(ctx, sum, add_bias(ctx, shared, weights.ffn_down_b));
    }
    if (weights.ffn_post_norm != nullptr) {
        sum = build_norm(block, sum, weights.ffn_post_norm);
    }
    return ggml_add(ctx, stream, scaled(ctx, sum, block.config.residual_scale));
}

}  // namespace

ggml_tensor* build_attention_module(const BlockContext& block,
                                    int layer,
                                    int group,
                                    ggml_tensor* stream) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = block.ctx;
    ProductInput x = module_input(block, stream, weights.attn_norm);
    auto [q, k, v] = build_products<3>(ctx, {weights.wq, weights.wk, weights.wv},
                                       {weights.bq, weights.bk, weights.bv}, x);
    q = build_heads(block, layer, q, k, v);

    const AttentionInputs& inputs = block.attention[static_cast<std::size_t>(group)];
    ggml_tensor* out =
        build_attention(ctx, block.config, block.cache, layer, weights.attn_sinks, q, inputs);
    ProductInput heads = ProductInput::rows(out);
    return named(
        build_output(block, {weights.wo, weights.bo, weights.attn_post_norm}, heads, stream), layer,
        "attn.out");
}

ggml_tensor* build_mlp_module(const BlockContext& block,
                              int layer,
                              int n_experts,
                              ggml_tensor* stream) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    ProductInput x = module_input(block, stream, weights.ffn_norm);
    if (block.config.layer(layer).experts) {
        return named(build_expert_output(block, layer, n_experts, x, stream), layer, "mlp.out");
    }
    ProductInput hidden = build_gates(block, weights, x);
    return named(build_output(block, {weights.ffn_down, weights.ffn_down_b, weights.ffn_post_norm},
                              hidden, stream),
                 layer, "mlp.out");
}

ggml_tensor* build_embedding(const BlockContext& block, ggml_tensor* tokens) {
    return scaled(block.ctx, ggml_get_rows(block.ctx, block.tensors.token_embd, tokens),
                  block.config.embedding_scale);
}

ggml_tensor* build_head(const BlockContext& block, const HeadTensors& head, ggml_tensor* stream) {
    ProductInput x = ProductInput::normed(stream, block.tensors.output_norm, block.config.rms_eps);
    ggml_tensor* logits = add_bias(block.ctx, build_product(block.ctx, head.weight, x), head.bias);
    logits = scaled(block.ctx, logits, block.config.logit_scale);
    logits = capped(block.ctx, logits, block.config.final_soft_cap);
    ggml_set_name(logits, "logits");
    return logits;
}

}  // namespace knap
