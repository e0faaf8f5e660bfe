#include "graph/plan_cost.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "base/error.h"
#include "kv/kv_store.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap {
namespace {

std::int64_t stored_bytes(const ggml_tensor* tensor) {
    return tensor != nullptr ? static_cast<std::int64_t>(ggml_nbytes(tensor)) : 0;
}

// Matrices {n_in, n_out} are multiplied by; vectors (norms, biases) only read. Null: not there.
ModuleCost module_cost(std::initializer_list<const ggml_tensor*> matrices,
                       std::initializer_list<const ggml_tensor*> vectors) {
    ModuleCost cost;
    for (const ggml_tensor* matrix : matrices) {
        cost.weight_bytes += stored_bytes(matrix);
        cost.operations += 2 * ggml_nelements(matrix);
    }
    for (const ggml_tensor* vector : vectors) {
        cost.weight_bytes += stored_bytes(vector);
    }
    return cost;
}

LayerCost layer_cost(const LayerWeights& w) {
    return {
        .attention = module_cost({w.wq, w.wk, w.wv, w.wo},
                                 {w.attn_norm, w.q_norm, w.k_norm, w.bq, w.bk, w.bv, w.bo}),
        .mlp = module_cost({w.ffn_gate, w.ffn_up, w.ffn_down},
                           {w.ffn_norm, w.ffn_gate_b, w.ffn_up_b, w.ffn_down_b}),
    };
}

// `n_tokens` rows of the output matrix, each with its bias, and the norm before it.
ModuleCost head_cost(const ModelTensors& tensors, std::int64_t n_tokens) {
    const ggml_tensor* matrix = tensors.output;
    const std::int64_t n_all = matrix->ne[1];
    return {.weight_bytes = stored_bytes(matrix) / n_all * n_tokens +
                            stored_bytes(tensors.output_b) / n_all * n_tokens +
                            stored_bytes(tensors.output_norm),
            .operations = 2 * matrix->ne[0] * n_tokens};
}

void add(const ModuleCost& module, int n_rows, PlanCost& cost) {
    cost.weight_bytes += module.weight_bytes;
    cost.operations += module.operations * n_rows;
}

// Committed rows that an attention at `level` reads.
int visible_rows(const Level& level, int n_context) {
    return level.kind == Level::Kind::window ? std::min(n_context, level.window.n_rows())
                                             : n_context;
}

// Pairs of rows that the mask hides are computed like the others.
void add_cache(const ModelCost& model, std::int64_t n_visible, int n_rows, PlanCost& cost) {
    const std::int64_t n_read = n_visible + n_rows;
    cost.cache_bytes += model.cache_row_bytes * n_read;
    cost.operations += model.operations_per_cache_row * n_read * n_rows;
}

}  // namespace

ModelCost model_cost(const ModelConfig& config,
                     const Weights& weights,
                     const KvCacheOptions& cache) {
    const ModelTensors& tensors = weights.tensors();
    ModelCost cost{
        .head = head_cost(tensors, config.n_vocab),
        .reduced_head = head_cost(tensors, HeadSubset::capacity_for(config.n_vocab)),
        .embedding_row_bytes = static_cast<std::int64_t>(
            ggml_row_size(tensors.token_embd->type, tensors.token_embd->ne[0])),
        .rope_bytes = stored_bytes(tensors.rope_freqs),
        .cache_row_bytes = static_cast<std::int64_t>(kv_row_bytes(config, cache)),
        .operations_per_cache_row = std::int64_t{4} * config.n_embd_q(),
    };
    std::ranges::transform(tensors.layers, std::back_inserter(cost.layers), layer_cost);
    return cost;
}

PlanCost plan_cost(const ModelCost& model, const ModulePlan& plan, int n_context, int n_rows) {
    KNAP_ASSERT(model.layers.size() == static_cast<std::size_t>(plan.n_layers()),
                "the plan is one of this model");
    PlanCost cost{.weight_bytes = model.embedding_row_bytes * n_rows + model.rope_bytes};
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const LayerCost& modules = model.layers[static_cast<std::size_t>(layer)];
        if (plan.runs(layer, Module::attention)) {
            add(modules.attention, n_rows, cost);
            const Level& level = plan.level(layer, Module::attention);
            add_cache(model, visible_rows(level, n_context), n_rows, cost);
        }
        if (plan.runs(layer, Module::mlp)) {
            add(modules.mlp, n_rows, cost);
        }
    }
    add(plan.head() == HeadLevel::full ? model.head : model.reduced_head, n_rows, cost);
    return cost;
}

}  // namespace knap
