#include "support/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "ggml-alloc.h"
#include "ggml-backend.h"

namespace knap::test {
namespace {

constexpr std::size_t kMaxNodes = 16384;
constexpr int kMostReplaced = 2000;  // tokens of a pass

ggml_tensor* norm(ggml_context* ctx, ggml_tensor* x, ggml_tensor* weight, float eps) {
    return ggml_mul(ctx, ggml_rms_norm(ctx, x, eps), weight);
}

// Modules without a norm take the stream as it is.
ggml_tensor* norm_if(ggml_context* ctx, ggml_tensor* x, ggml_tensor* weight, float eps) {
    return weight != nullptr ? norm(ctx, x, weight, eps) : x;
}

ggml_tensor* capped(ggml_context* ctx, ggml_tensor* x, float cap) {
    return cap == 0.0f ? x : ggml_scale(ctx, ggml_tanh(ctx, ggml_scale(ctx, x, 1.0f / cap)), cap);
}

// libllama scales the queries of these, not their scores.
bool scales_queries(const ModelConfig& config) {
    return config.architecture == "phi3" || config.architecture == "gemma2" ||
           config.architecture == "gemma3";
}

ggml_tensor* gated(ggml_context* ctx, Activation activation, ggml_tensor* gate, ggml_tensor* up) {
    return activation == Activation::clamped_swiglu ? ggml_swiglu_oai(ctx, gate, up, 1.702f, 7.0f)
           : activation == Activation::gelu         ? ggml_geglu_split(ctx, gate, up)
                                                    : ggml_swiglu_split(ctx, gate, up);
}

ggml_tensor* scaled(ggml_context* ctx, ggml_tensor* x, float scale) {
    return scale == 1.0f ? x : ggml_scale(ctx, x, scale);
}

}  // namespace

struct ReferenceForward::Graph {
    ggml_context_ptr context;
    ggml_cgraph* graph;
    int n_rows;
    int n_kv;
    ggml_tensor* tokens;
    ggml_tensor* positions;
    ggml_tensor* divisors = nullptr;      // f32 [n_rot / 2]; null: those of the model, if any
    ggml_tensor* query_scales = nullptr;  // f32 [1, 1, n_rows]; null: none
    ggml_tensor* slots;                   // i64 [n_rows]
    ggml_tensor* value_slots;             // i64 [n_rows * n_embd_kv]
    std::vector<ggml_tensor*> masks;      // per layer, f32 [n_kv, n_rows]
    struct Router {
        ggml_tensor* logits;  // f32 [n_experts, n_rows]
        int n_used;
    };
    std::vector<Router> routers;  // of the layers with experts that run
};

ReferenceForward::ReferenceForward(LoadedModel& model, int n_ctx, Factors factors)
    : model_(model), n_ctx_(n_ctx), factors_(factors) {
    const auto n_layers = static_cast<std::size_t>(model.config.n_layers);
    cache_context_.reset(ggml_init({2 * n_layers * ggml_tensor_overhead(), nullptr, true}));
    for (std::size_t i = 0; i < n_layers; ++i) {
        keys_.push_back(ggml_new_tensor_2d(cache_context_.get(), GGML_TYPE_F16,
                                           model.config.n_embd_kv(), n_ctx));
        values_.push_back(ggml_new_tensor_2d(cache_context_.get(), GGML_TYPE_F16, n_ctx,
                                             model.config.n_embd_kv()));
    }
    cache_buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(cache_context_.get(),
                                                                 model.backend.buffer_type()));
    ggml_backend_buffer_clear(cache_buffer_.get(), 0);
}

ggml_tensor* ReferenceForward::linear(ggml_context* ctx,
                                      ggml_tensor* weight,
                                      ggml_tensor* bias,
                                      ggml_tensor* x) {
    if (factors_ != Factors::as_stored && weight->type != GGML_TYPE_F32) {
        weight = ggml_cast(ctx, weight, GGML_TYPE_F32);
    }
    if (factors_ == Factors::f16) {
        weight = ggml_cast(ctx, weight, GGML_TYPE_F16);
    }
    ggml_tensor* y = ggml_mul_mat(ctx, weight, x);
    return bias == nullptr ? y : ggml_add(ctx, y, bias);
}

ggml_tensor* ReferenceForward::attention(Graph& g, int layer, ggml_tensor* x) {
    const ModelConfig& c = model_.config;
    const LayerWeights& w = model_.weights->tensors().layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = g.context.get();
    const LayerSpec& spec = c.layer(layer);
    const auto turn = [&](ggml_tensor* heads) {
        if (spec.rotation == Rotation::none) {
            return heads;
        }
        const RopeConfig& rope = c.rope_of(spec.rotation);
        const int mode =
            rope.pairing == RopePairing::halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
        ggml_tensor* divisors =
            g.divisors != nullptr ? g.divisors : model_.weights->tensors().rope_freqs;
        return ggml_rope_ext(ctx, heads, g.positions, divisors, rope.n_rot, mode, rope.n_ctx_orig,
                             rope.freq_base, rope.freq_scale, rope.ext_factor, rope.attn_factor,
                             rope.beta_fast, rope.beta_slow);
    };
    const auto rotate = [&](ggml_tensor* rows, int n_heads, ggml_tensor* head_norm) {
        const bool is_whole = c.head_norm == HeadNorm::whole_row;
        rows = is_whole ? norm_if(ctx, rows, head_norm, c.rms_eps) : rows;
        ggml_tensor* heads = ggml_reshape_3d(ctx, rows, c.head_dim, n_heads, g.n_rows);
        if (c.head_norm == HeadNorm::after_rotation) {
            return norm_if(ctx, turn(heads), head_norm, c.rms_eps);
        }
        return turn(is_whole ? heads : norm_if(ctx, heads, head_norm, c.rms_eps));
    };
    ggml_tensor* q = linear(ctx, w.wq, w.bq, x);
    ggml_tensor* k = linear(ctx, w.wk, w.bk, x);
    ggml_tensor* v = linear(ctx, w.wv, w.bv, x);
    q = rotate(q, c.n_heads, w.q_norm);
    k = rotate(k, c.n_kv_heads, w.k_norm);
    float scale = c.attention_scale;
    if (scales_queries(c)) {
        q = ggml_scale(ctx, q, std::exchange(scale, 1.0f));
    }
    if (g.query_scales != nullptr) {
        q = ggml_mul(ctx, q, g.query_scales);
    }

    ggml_tensor* key_cache = keys_[static_cast<std::size_t>(layer)];
    ggml_tensor* value_cache = values_[static_cast<std::size_t>(layer)];
    ggml_build_forward_expand(
        g.graph,
        ggml_set_rows(ctx, key_cache, ggml_reshape_2d(ctx, k, c.n_embd_kv(), g.n_rows), g.slots));
    ggml_build_forward_expand(
        g.graph,
        ggml_set_rows(ctx, ggml_reshape_2d(ctx, value_cache, 1, ggml_nelements(value_cache)),
                      ggml_reshape_2d(ctx, v, 1, ggml_nelements(v)), g.value_slots));

    ggml_tensor* cached_k =
        ggml_view_3d(ctx, key_cache, c.head_dim, g.n_kv, c.n_kv_heads, key_cache->nb[1],
                     ggml_row_size(GGML_TYPE_F16, c.head_dim), 0);
    ggml_tensor* cached_v =
        ggml_view_3d(ctx, value_cache, g.n_kv, c.head_dim, c.n_kv_heads, value_cache->nb[1],
                     value_cache->nb[1] * static_cast<std::size_t>(c.head_dim), 0);
    if (factors_ == Factors::f32) {
        cached_k = ggml_cast(ctx, cached_k, GGML_TYPE_F32);
        cached_v = ggml_cast(ctx, cached_v, GGML_TYPE_F32);
    }
    ggml_tensor* scores =
        ggml_mul_mat(ctx, cached_k, ggml_permute(ctx, q, 0, 2, 1, 3));  // [n_kv, n_rows, n_heads]
    scores = capped(ctx, scores, c.soft_cap);
    scores = ggml_soft_max_ext(ctx, scores, g.masks[static_cast<std::size_t>(layer)], scale, 0.0f);
    ggml_soft_max_add_sinks(scores, w.attn_sinks);
    ggml_tensor* out = ggml_mul_mat(ctx, cached_v, scores);  // [head_dim, n_rows, n_heads]
    out = ggml_cont_2d(ctx, ggml_permute(ctx, out, 0, 2, 1, 3), c.n_embd_q(), g.n_rows);
    out = norm_if(ctx, linear(ctx, w.wo, w.bo, out), w.attn_post_norm, c.rms_eps);
    return scaled(ctx, out, c.residual_scale);
}

ggml_tensor* ReferenceForward::mlp(Graph& g, int layer, ggml_tensor* x) {
    const LayerWeights& w = model_.weights->tensors().layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = g.context.get();
    ggml_tensor* up = linear(ctx, w.ffn_up, w.ffn_up_b, x);
    ggml_tensor* gate = linear(ctx, w.ffn_gate, w.ffn_gate_b, x);
    return linear(ctx, w.ffn_down, w.ffn_down_b, gated(ctx, model_.config.activation, gate, up));
}

// In libllama's order, with a matrix of each expert as a plane.
ggml_tensor* ReferenceForward::experts(Graph& g, int layer, int n_used, ggml_tensor* x) {
    const ModelConfig& c = model_.config;
    const ExpertSpec& spec = *c.layer(layer).experts;
    const LayerWeights& w = model_.weights->tensors().layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = g.context.get();
    const std::int64_t n_rows = x->ne[1];
    ggml_tensor* probabilities = linear(ctx, w.router, w.router_b, x);
    ggml_set_output(probabilities);  // for the margins
    g.routers.push_back({.logits = probabilities, .n_used = n_used});
    if (spec.gating == Gating::softmax) {
        probabilities = ggml_soft_max(ctx, probabilities);
    }
    ggml_tensor* ids = ggml_argsort_top_k(ctx, probabilities, n_used);
    ggml_tensor* weights =
        ggml_get_rows(ctx, ggml_reshape_3d(ctx, probabilities, 1, spec.n_experts, n_rows), ids);
    weights = ggml_reshape_2d(ctx, weights, n_used, n_rows);
    if (spec.gating == Gating::chosen) {
        weights = ggml_soft_max(ctx, weights);
    }
    if (spec.normalises) {
        weights = ggml_div(ctx, weights,
                           ggml_clamp(ctx, ggml_sum_rows(ctx, weights), 6.103515625e-5f, INFINITY));
    }
    weights = ggml_reshape_3d(ctx, weights, 1, n_used, n_rows);
    const auto of_experts = [&](ggml_tensor* weight, ggml_tensor* bias, ggml_tensor* rows) {
        if (factors_ != Factors::as_stored && weight->type != GGML_TYPE_F32) {
            weight = ggml_cast(ctx, weight, GGML_TYPE_F32);
        }
        if (factors_ == Factors::f16) {
            weight = ggml_cast(ctx, weight, GGML_TYPE_F16);
        }
        ggml_tensor* y = ggml_mul_mat_id(ctx, weight, rows, ids);
        return bias == nullptr ? y : ggml_add_id(ctx, y, bias, ids);
    };
    ggml_tensor* rows = ggml_reshape_3d(ctx, x, c.n_embd, 1, n_rows);
    ggml_tensor* up = of_experts(w.expert_up, w.expert_up_b, rows);
    ggml_tensor* gate = of_experts(w.expert_gate, w.expert_gate_b, rows);
    ggml_tensor* results =
        of_experts(w.expert_down, w.expert_down_b, gated(ctx, c.activation, gate, up));
    results = ggml_mul(ctx, results, weights);
    ggml_tensor* sum = nullptr;
    for (int rank = 0; rank < n_used; ++rank) {
        ggml_tensor* of_rank = ggml_view_2d(ctx, results, c.n_embd, n_rows, results->nb[2],
                                            static_cast<std::size_t>(rank) * results->nb[1]);
        sum = sum == nullptr ? ggml_cont(ctx, of_rank) : ggml_add(ctx, sum, of_rank);
    }
    return sum;
}

// The MLP, or experts and the one that every row uses.
ggml_tensor* ReferenceForward::mlp_module(Graph& g, int layer, const Level& level, ggml_tensor* x) {
    const ModelConfig& c = model_.config;
    const LayerWeights& w = model_.weights->tensors().layers[static_cast<std::size_t>(layer)];
    ggml_context* ctx = g.context.get();
    ggml_tensor* out = nullptr;
    if (const auto& spec = c.layer(layer).experts) {
        out = experts(g, layer, level.n_experts > 0 ? level.n_experts : spec->n_used, x);
    }
    if (w.ffn_down != nullptr) {
        ggml_tensor* dense = mlp(g, layer, x);
        out = out == nullptr ? dense : ggml_add(ctx, out, dense);
    }
    return scaled(ctx, norm_if(ctx, out, w.ffn_post_norm, c.rms_eps), c.residual_scale);
}

void ReferenceForward::set_inputs(Graph& g, const ReferencePass& pass) {
    std::vector<std::int32_t> positions;
    std::vector<std::int64_t> slots;
    std::vector<std::int64_t> value_slots;
    for (int row = 0; row < g.n_rows; ++row) {
        const int slot = pass.first_row + row;
        positions.push_back(pass.positions.empty() ? slot
                                                   : pass.positions[static_cast<std::size_t>(row)]);
        slots.push_back(slot);
        for (std::int64_t channel = 0; channel < model_.config.n_embd_kv(); ++channel) {
            value_slots.push_back(channel * n_ctx_ + slot);
        }
    }
    const auto set = [](ggml_tensor* tensor, const void* values) {
        if (tensor->buffer != nullptr) {  // inputs that only skipped modules read are not allocated
            ggml_backend_tensor_set(tensor, values, 0, ggml_nbytes(tensor));
        }
    };
    set(g.tokens, pass.tokens.data());
    set(g.positions, positions.data());
    if (g.divisors != nullptr) {
        set(g.divisors, model_.config.rope.divisors.data());
    }
    if (g.query_scales != nullptr) {
        std::vector<float> scales;
        for (const std::int32_t position : positions) {
            scales.push_back(query_scale(model_.config.temperature, position));
        }
        set(g.query_scales, scales.data());
    }
    set(g.slots, slots.data());
    set(g.value_slots, value_slots.data());
    for (int layer = 0; layer < static_cast<int>(g.masks.size()); ++layer) {
        const int window = model_.config.layer(layer).window;
        const auto sees = [&](int row, int j) {
            const int own = pass.first_row + row;
            return j <= own && (window == 0 || own - j < window);
        };
        std::vector<float> mask;
        for (int row = 0; row < g.n_rows; ++row) {
            for (int j = 0; j < g.n_kv; ++j) {
                const bool is_visible = pass.sees ? pass.sees(layer, row, j) : sees(row, j);
                mask.push_back(is_visible ? 0.0f : -INFINITY);
            }
        }
        set(g.masks[static_cast<std::size_t>(layer)], mask.data());
    }
}

void ReferenceForward::read_margins(const Graph& g) {
    router_margins_.assign(static_cast<std::size_t>(g.n_rows), INFINITY);
    for (const Graph::Router& router : g.routers) {
        const auto n_experts = static_cast<std::size_t>(router.logits->ne[0]);
        const auto n_used = static_cast<std::size_t>(router.n_used);
        std::vector<float> values(n_experts);
        for (std::size_t row = 0; n_used < n_experts && row < router_margins_.size(); ++row) {
            ggml_backend_tensor_get(router.logits, values.data(), router.logits->nb[1] * row,
                                    router.logits->nb[1]);
            std::ranges::sort(values, std::greater<>());
            router_margins_[row] =
                std::min(router_margins_[row], values[n_used - 1] - values[n_used]);
        }
    }
}

std::vector<std::vector<float>> ReferenceForward::run_decided(std::vector<Token>& tokens,
                                                              ReferencePass pass,
                                                              float least_margin) {
    for (int n_left = kMostReplaced; n_left > 0; --n_left) {
        pass.tokens = tokens;
        auto rows = run(pass);
        const auto close = std::ranges::find_if(
            router_margins_, [&](float margin) { return margin < least_margin; });
        if (close == router_margins_.end()) {
            return rows;
        }
        Token& token = tokens[static_cast<std::size_t>(close - router_margins_.begin())];
        token = (token + 1) % model_.config.n_vocab;
    }
    throw Error("routers are always undecided");
}

std::vector<Token> decided_tokens(LoadedModel& model, int n, unsigned seed, float least_margin) {
    constexpr int kRows = 16;  // of a pass
    std::vector<Token> tokens = random_tokens(n, model.config.n_vocab, seed);
    if (model.config.n_experts_used() == 0) {
        return tokens;
    }
    ReferenceForward reference(model, (n + 255) / 256 * 256);
    for (int first = 0; first < n; first += kRows) {
        const auto begin = tokens.begin() + first;
        std::vector<Token> some(begin, begin + std::min(kRows, n - first));
        reference.run_decided(some, {.first_row = first}, least_margin);
        std::ranges::copy(some, begin);
    }
    return tokens;
}

std::vector<std::vector<float>> ReferenceForward::feed(std::span<const Token> tokens) {
    auto rows = run({.tokens = tokens, .first_row = n_past_});
    n_past_ += static_cast<int>(tokens.size());
    return rows;
}

std::vector<std::vector<float>> ReferenceForward::run(const ReferencePass& pass) {
    const ModelConfig& c = model_.config;
    const ModelTensors& w = model_.weights->tensors();
    const ModulePlan plan = pass.plan != nullptr ? *pass.plan : ModulePlan(c.n_layers);
    Graph g;
    g.n_rows = static_cast<int>(pass.tokens.size());
    g.n_kv = std::min(n_ctx_, (pass.first_row + g.n_rows + 255) / 256 * 256);
    g.context.reset(ggml_init(
        {kMaxNodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(kMaxNodes, false), nullptr,
         true}));
    ggml_context* ctx = g.context.get();
    g.graph = ggml_new_graph_custom(ctx, kMaxNodes, false);
    const auto input = [](ggml_tensor* tensor) {
        ggml_set_input(tensor);
        ggml_set_output(tensor);  // keeps its memory while the graph runs
        return tensor;
    };
    g.tokens = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, g.n_rows));
    g.positions = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, g.n_rows));
    if (!c.rope.divisors.empty()) {
        g.divisors = input(ggml_new_tensor_1d(ctx, GGML_TYPE_F32, c.rope.n_rot / 2));
    }
    if (c.temperature.scale != 0) {
        g.query_scales = input(ggml_new_tensor_3d(ctx, GGML_TYPE_F32, 1, 1, g.n_rows));
    }
    g.slots = input(ggml_new_tensor_1d(ctx, GGML_TYPE_I64, g.n_rows));
    g.value_slots =
        input(ggml_new_tensor_1d(ctx, GGML_TYPE_I64, std::int64_t{g.n_rows} * c.n_embd_kv()));
    for (int layer = 0; layer < c.n_layers; ++layer) {
        g.masks.push_back(input(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, g.n_kv, g.n_rows)));
    }
    ggml_tensor* x = scaled(ctx, ggml_get_rows(ctx, w.token_embd, g.tokens), c.embedding_scale);
    for (int layer = 0; layer < c.n_layers; ++layer) {
        const LayerWeights& lw = w.layers[static_cast<std::size_t>(layer)];
        if (plan.runs(layer, Module::attention)) {
            x = ggml_add(ctx, attention(g, layer, norm_if(ctx, x, lw.attn_norm, c.rms_eps)), x);
        }
        if (plan.runs(layer, Module::mlp)) {
            x = ggml_add(ctx,
                         mlp_module(g, layer, plan.level(layer, Module::mlp),
                                    norm_if(ctx, x, lw.ffn_norm, c.rms_eps)),
                         x);
        }
    }
    ggml_tensor* logits =
        scaled(ctx, linear(ctx, w.output, w.output_b, norm(ctx, x, w.output_norm, c.rms_eps)),
               c.logit_scale);
    logits = capped(ctx, logits, c.final_soft_cap);
    ggml_set_output(logits);
    ggml_build_forward_expand(g.graph, logits);

    ggml_gallocr_ptr allocator(ggml_gallocr_new(model_.backend.buffer_type()));
    ggml_gallocr_alloc_graph(allocator.get(), g.graph);
    set_inputs(g, pass);
    model_.backend.compute(g.graph);
    read_margins(g);

    std::vector<std::vector<float>> rows;
    for (int row = 0; row < g.n_rows; ++row) {
        std::vector<float> values(static_cast<std::size_t>(c.n_vocab));
        ggml_backend_tensor_get(logits, values.data(),
                                logits->nb[1] * static_cast<std::size_t>(row), logits->nb[1]);
        rows.push_back(std::move(values));
    }
    return rows;
}

}  // namespace knap::test
