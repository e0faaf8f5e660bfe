#include "graph/blocks.h"

namespace knap {
namespace {

// Names a node "l12.attn.out", so that a graph dump can be read.
ggml_tensor* named(ggml_tensor* tensor, int layer, const char* what) {
    ggml_format_name(tensor, "l%d.%s", layer, what);
    return tensor;
}

ggml_tensor* build_linear(ggml_context* ctx,
                          ggml_tensor* weight,
                          ggml_tensor* bias,
                          ggml_tensor* x) {
    ggml_tensor* y = ggml_mul_mat(ctx, weight, x);
    return bias != nullptr ? ggml_add(ctx, y, bias) : y;
}

// Splits [n_heads * head_dim, n_rows] into heads, normalises each where the model does, and rotates
// it.
ggml_tensor* build_rotated_heads(const BlockContext& block, ggml_tensor* x, ggml_tensor* norm) {
    const ModelConfig& config = block.config;
    const RopeConfig& rope = config.rope;
    x = ggml_reshape_3d(block.ctx, x, config.head_dim, x->ne[0] / config.head_dim, x->ne[1]);
    if (norm != nullptr) {
        x = build_norm(block.ctx, x, norm, config.rms_eps);
    }
    const int mode =
        rope.pairing == RopePairing::halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
    return ggml_rope_ext(block.ctx, x, block.positions, block.tensors.rope_freqs, rope.n_rot, mode,
                         rope.n_ctx_orig, rope.freq_base, rope.freq_scale, rope.ext_factor,
                         rope.attn_factor, rope.beta_fast, rope.beta_slow);
}

}  // namespace

ggml_tensor* build_norm(ggml_context* ctx, ggml_tensor* x, ggml_tensor* weight, float eps) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, eps), weight);  // adjacent: ggml fuses the two
}

ggml_tensor* build_attention_module(const BlockContext& block,
                                    int layer,
                                    int group,
                                    ggml_tensor* stream) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = block.ctx;
    ggml_tensor* x =
        named(build_norm(ctx, stream, weights.attn_norm, block.config.rms_eps), layer, "attn.norm");

    ggml_tensor* q = build_linear(ctx, weights.wq, weights.bq, x);
    ggml_tensor* k = build_linear(ctx, weights.wk, weights.bk, x);
    ggml_tensor* v = named(build_linear(ctx, weights.wv, weights.bv, x), layer, "attn.v");
    q = named(build_rotated_heads(block, q, weights.q_norm), layer, "attn.q");
    k = named(build_rotated_heads(block, k, weights.k_norm), layer, "attn.k");
    // Kept in this order in the graph: the three products read the same activations while they are
    // warm.
    ggml_build_forward_expand(block.graph, q);
    k = ggml_reshape_2d(ctx, k, block.config.n_embd_kv(), k->ne[2]);
    block.cache.write(ctx, block.graph, layer, k, v, block.slots);

    const AttentionInputs& inputs = block.attention[static_cast<std::size_t>(group)];
    ggml_tensor* out = build_attention(ctx, block.config, block.cache, layer, q, inputs.blocks,
                                       inputs.masks, inputs.runs);
    return named(build_linear(ctx, weights.wo, weights.bo, out), layer, "attn.out");
}

ggml_tensor* build_mlp_module(const BlockContext& block, int layer, ggml_tensor* stream) {
    const LayerWeights& weights = block.tensors.layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = block.ctx;
    ggml_tensor* x =
        named(build_norm(ctx, stream, weights.ffn_norm, block.config.rms_eps), layer, "mlp.norm");
    ggml_tensor* gate = build_linear(ctx, weights.ffn_gate, weights.ffn_gate_b, x);
    ggml_tensor* up = build_linear(ctx, weights.ffn_up, weights.ffn_up_b, x);
    ggml_tensor* hidden = named(ggml_swiglu_split(ctx, gate, up), layer, "mlp.hidden");
    return named(build_linear(ctx, weights.ffn_down, weights.ffn_down_b, hidden), layer, "mlp.out");
}

ggml_tensor* build_head(const BlockContext& block, const HeadTensors& head, ggml_tensor* stream) {
    ggml_tensor* x = build_norm(block.ctx, stream, block.tensors.output_norm, block.config.rms_eps);
    ggml_tensor* logits = build_linear(block.ctx, head.weight, head.bias, x);
    ggml_set_name(logits, "logits");
    return logits;
}

}  // namespace knap
