#include "forward/plan_cost.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <iterator>

#include "base/error.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap {
namespace {

std::int64_t stored_bytes(const ggml_tensor* tensor) {
    return tensor != nullptr ? static_cast<std::int64_t>(ggml_nbytes(tensor)) : 0;
}

// Null: not there.
std::int64_t stored_bytes(std::initializer_list<const ggml_tensor*> tensors) {
    std::int64_t n_bytes = 0;
    for (const ggml_tensor* tensor : tensors) {
        n_bytes += stored_bytes(tensor);
    }
    return n_bytes;
}

ExpertCost expert_cost(const LayerSpec& spec, const LayerWeights& w) {
    if (!spec.experts) {
        return {};
    }
    const std::int64_t all = stored_bytes({w.expert_gate, w.expert_up, w.expert_down,
                                           w.expert_gate_b, w.expert_up_b, w.expert_down_b});
    return {.bytes = all / spec.experts->n_experts,
            .n_experts = spec.experts->n_experts,
            .n_used = spec.experts->n_used};
}

LayerCost layer_cost(const LayerSpec& spec, const LayerWeights& w) {
    return {
        .attention_bytes = stored_bytes({w.wq, w.wk, w.wv, w.wo, w.attn_norm, w.attn_post_norm,
                                         w.q_norm, w.k_norm, w.bq, w.bk, w.bv, w.bo, w.attn_sinks}),
        .mlp_bytes = stored_bytes({w.ffn_gate, w.ffn_up, w.ffn_down, w.ffn_norm, w.ffn_post_norm,
                                   w.ffn_gate_b, w.ffn_up_b, w.ffn_down_b, w.router, w.router_b}),
        .experts = expert_cost(spec, w),
        .window = spec.window,
    };
}

// `n_tokens` rows of the output matrix, each with its bias, and the norm before it.
std::int64_t head_bytes(const ModelTensors& tensors, std::int64_t n_tokens) {
    const std::int64_t n_all = tensors.output->ne[1];
    return stored_bytes(tensors.output) / n_all * n_tokens +
           stored_bytes(tensors.output_b) / n_all * n_tokens + stored_bytes(tensors.output_norm);
}

// Committed rows that an attention at `level` reads, in a layer with such a window of its own.
int visible_rows(const Level& level, int own_window, int n_context) {
    const int n_visible = own_window > 0 ? std::min(n_context, own_window - 1) : n_context;
    return level.kind == Level::Kind::window ? std::min(n_visible, level.window.n_rows())
                                             : n_visible;
}

}  // namespace

double ExpertCost::n_read(int n_allowed, int n_rows) const {
    if (n_experts == 0) {
        return 0;
    }
    const int n = n_allowed > 0 ? std::min(n_allowed, n_used) : n_used;
    return n_experts * (1 - std::pow(1 - static_cast<double>(n) / n_experts, n_rows));
}

ModelCost model_cost(const ModelConfig& config,
                     const Weights& weights,
                     std::size_t cache_row_bytes) {
    const ModelTensors& tensors = weights.tensors();
    ModelCost cost{
        .head_bytes = head_bytes(tensors, config.n_vocab),
        .reduced_head_bytes = head_bytes(tensors, HeadSubset::capacity_for(config.n_vocab)),
        .embedding_row_bytes = static_cast<std::int64_t>(
            ggml_row_size(tensors.token_embd->type, tensors.token_embd->ne[0])),
        .rope_bytes = stored_bytes(tensors.rope_freqs),
        .cache_row_bytes = static_cast<std::int64_t>(cache_row_bytes),
    };
    std::ranges::transform(config.layers, tensors.layers, std::back_inserter(cost.layers),
                           layer_cost);
    return cost;
}

PlanCost plan_cost(const ModelCost& model, const ModulePlan& plan, int n_context, int n_rows) {
    KNAP_ASSERT(model.layers.size() == static_cast<std::size_t>(plan.n_layers()),
                "the plan is one of this model");
    PlanCost cost{.weight_bytes = model.embedding_row_bytes * n_rows + model.rope_bytes};
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const LayerCost& modules = model.layers[static_cast<std::size_t>(layer)];
        if (plan.runs(layer, Module::attention)) {
            const int n_visible =
                visible_rows(plan.level(layer, Module::attention), modules.window, n_context);
            cost.weight_bytes += modules.attention_bytes;
            cost.cache_bytes += model.cache_row_bytes * (n_visible + n_rows);
        }
        if (plan.runs(layer, Module::mlp)) {
            const int n_allowed = plan.level(layer, Module::mlp).n_experts;
            const double n_read = modules.experts.n_read(n_allowed, n_rows);
            cost.weight_bytes += modules.mlp_bytes +
                                 std::llround(n_read * static_cast<double>(modules.experts.bytes));
        }
    }
    cost.weight_bytes +=
        plan.head() == HeadLevel::full ? model.head_bytes : model.reduced_head_bytes;
    return cost;
}

}  // namespace knap
