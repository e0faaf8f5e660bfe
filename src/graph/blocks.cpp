#include "graph/blocks.h"

#include <array>

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

// stream + weight x + bias: a module's result added to what runs past it.
ggml_tensor* build_output(ggml_context* ctx,
                          ggml_tensor* weight,
                          ggml_tensor* bias,
                          ProductInput& x,
                          ggml_tensor* stream) {
    return bias == nullptr
               ? build_product(ctx, weight, x, stream)
               : ggml_add(ctx, stream, ggml_add(ctx, build_product(ctx, weight, x), bias));
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

// [n_heads * head_dim, n_rows], each head normalised where the model does.
ggml_tensor* build_normed_heads(const BlockContext& block, ggml_tensor* x, ggml_tensor* norm) {
    if (norm == nullptr) {
        return x;
    }
    const std::int64_t head_dim = block.config.head_dim;
    ggml_tensor* heads = ggml_view_3d(block.ctx, x, head_dim, x->ne[0] / head_dim, x->ne[1],
                                      ggml_row_size(x->type, head_dim), x->nb[1], 0);
    heads = ProductInput::normed(heads, norm, block.config.rms_eps).floats(block.ctx);
    return ggml_reshape_2d(block.ctx, heads, x->ne[0], x->ne[1]);
}

// [head_dim, n_heads, n_rows]
ggml_tensor* build_rotated_heads(const BlockContext& block, ggml_tensor* x, ggml_tensor* divisors) {
    const std::int64_t head_dim = block.config.head_dim;
    x = ggml_view_3d(block.ctx, x, head_dim, x->ne[0] / head_dim, x->ne[1],
                     ggml_row_size(x->type, head_dim), x->nb[1], 0);
    return build_rotation(block.ctx, block.config.rope, x, block.positions, divisors);
}

// From the products q, k and v, each [n_heads * head_dim, n_rows] for its number of heads: keys and
// values go to the cache, and the rotated queries [head_dim, n_heads, n_rows] are returned. Rows
// may lie apart.
ggml_tensor* build_heads(
    const BlockContext& block, int layer, ggml_tensor* q, ggml_tensor* k, ggml_tensor* v) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    q = build_normed_heads(block, q, weights.q_norm);
    k = build_normed_heads(block, k, weights.k_norm);
    if (is_tiled(block.cache.layout())) {
        q = named(build_kernel_heads(block.ctx, block.config, block.cache, layer, {q, k, v},
                                     block.rope_table, block.slots),
                  layer, "attn.q");
        ggml_build_forward_expand(block.graph, q);
        return q;
    }
    q = named(build_rotated_heads(block, q, weights.rope_freqs), layer, "attn.q");
    k = named(build_rotated_heads(block, k, weights.rope_freqs), layer, "attn.k");
    // Kept in this order in the graph: the three products read the same activations while they are
    // warm.
    ggml_build_forward_expand(block.graph, q);
    k = ggml_reshape_2d(block.ctx, k, block.config.n_embd_kv(), k->ne[2]);
    v = ggml_is_contiguous(v) ? v : ggml_cont(block.ctx, v);
    block.cache.write(block.ctx, block.graph, layer, k, v, block.slots);
    return q;
}

}  // namespace

ggml_tensor* build_attention_module(const BlockContext& block,
                                    int layer,
                                    int group,
                                    ggml_tensor* stream) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = block.ctx;
    ProductInput x = ProductInput::normed(stream, weights.attn_norm, block.config.rms_eps);
    auto [q, k, v] = build_products<3>(ctx, {weights.wq, weights.wk, weights.wv},
                                       {weights.bq, weights.bk, weights.bv}, x);
    q = build_heads(block, layer, q, k, v);

    const AttentionInputs& inputs = block.attention[static_cast<std::size_t>(group)];
    ggml_tensor* out = build_attention(ctx, block.config, block.cache, layer, q, inputs);
    ProductInput heads = ProductInput::rows(out);
    return named(build_output(ctx, weights.wo, weights.bo, heads, stream), layer, "attn.out");
}

ggml_tensor* build_mlp_module(const BlockContext& block, int layer, ggml_tensor* stream) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = block.ctx;
    ProductInput x = ProductInput::normed(stream, weights.ffn_norm, block.config.rms_eps);
    const auto [gate, up] = build_products<2>(ctx, {weights.ffn_gate, weights.ffn_up},
                                              {weights.ffn_gate_b, weights.ffn_up_b}, x);
    ProductInput hidden = ProductInput::gated(gate, up);
    return named(build_output(ctx, weights.ffn_down, weights.ffn_down_b, hidden, stream), layer,
                 "mlp.out");
}

ggml_tensor* build_head(const BlockContext& block, const HeadTensors& head, ggml_tensor* stream) {
    ProductInput x = ProductInput::normed(stream, block.tensors.output_norm, block.config.rms_eps);
    ggml_tensor* logits = add_bias(block.ctx, build_product(block.ctx, head.weight, x), head.bias);
    ggml_set_name(logits, "logits");
    return logits;
}

}  // namespace knap
