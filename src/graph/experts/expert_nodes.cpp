#include "graph/experts/expert_nodes.h"

#include <array>
#include <cmath>
#include <span>

#include "graph/custom_node.h"
#include "graph/experts/expert_mlp.h"
#include "kernels/matmul/packed_rows.h"

namespace knap {
namespace {

// What both ways of building have in common.
struct ExpertLayer {
    const ModelConfig& config;
    const ExpertSpec& spec;
    const LayerWeights& weights;
    int n_used;
    ggml_tensor* logits;  // of the router, f32 [n_experts, n_rows]
};

// --- knap's operators ---

// Sources of all nodes but the first: the chosen experts, what is multiplied, then matrices and
// biases.
enum Source : int { chosen, rows, first_matrix };

std::span<const ChosenExpert> chosen_experts(const ggml_tensor* node) {
    return {static_cast<const ChosenExpert*>(node->data),
            static_cast<std::size_t>(ggml_nelements(node)) / 2};
}

int n_used_of(const ggml_tensor* of_chosen) {
    return static_cast<int>(of_chosen->ne[0]) / 2;
}

// The same in every node of a layer, and on every thread.
const ExpertGroups& groups_of(const ggml_tensor* node, int n_experts) {
    thread_local ExpertGroups groups;
    const ggml_tensor* of_chosen = node->src[Source::chosen];
    groups.assign(chosen_experts(of_chosen), n_used_of(of_chosen), n_experts);
    return groups;
}

// Calls run(tile) for every tile of this thread.
template <typename Run>
void run_share(
    const ExpertGroups& groups, const ExpertMatrix& by, int thread, int n_threads, Run run) {
    const ExpertTiles tiles(groups, groups.n_slots(), by, n_threads);
    const ThreadShare share(tiles.size(), thread, n_threads);
    for (std::int64_t i = share.begin; i < share.end; ++i) {
        run(tiles[static_cast<int>(i)]);
    }
}

// Source: the router's logits.
void compute_choice(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const auto& spec = *static_cast<const ExpertSpec*>(userdata);
    const ggml_tensor* logits = node->src[0];
    const auto n_used = static_cast<std::size_t>(n_used_of(node));
    auto* chosen = static_cast<ChosenExpert*>(node->data);
    const ThreadShare share(logits->ne[1], thread, n_threads);
    for (std::int64_t row = share.begin; row < share.end; ++row) {
        choose_experts(spec, {float_row(logits, row), static_cast<std::size_t>(logits->ne[0])},
                       {chosen + static_cast<std::size_t>(row) * n_used, n_used});
    }
}

// Matrices of gate, up and down, then the biases of gate and up.
void compute_gates(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    thread_local ExpertScratch scratch;
    const auto* sources = node->src + Source::first_matrix;
    const ExpertMlp mlp{.gate = expert_matrix(sources[0], sources[3]),
                        .up = expert_matrix(sources[1], sources[4]),
                        .down = expert_matrix(sources[2], nullptr),
                        .activation = *static_cast<const Activation*>(userdata)};
    scratch.reserve(row_bytes(mlp.gate.weight->matrix));
    const ExpertGroups& groups = groups_of(node, mlp.gate.weight->n_planes);
    run_share(groups, mlp.gate, thread, n_threads, [&](const ExpertTile& tile) {
        mlp.run_gates(groups, tile, static_cast<const std::byte*>(node->src[Source::rows]->data),
                      scratch, static_cast<std::byte*>(node->data));
    });
}

// The matrix of down and its bias.
void compute_down(ggml_tensor* node, int thread, int n_threads, void* /*userdata*/) {
    const auto* sources = node->src + Source::first_matrix;
    const ExpertMlp mlp{.down = expert_matrix(sources[0], sources[1])};
    const ExpertGroups& groups = groups_of(node, mlp.down.weight->n_planes);
    run_share(groups, mlp.down, thread, n_threads, [&](const ExpertTile& tile) {
        mlp.run_down(groups, tile, static_cast<const std::byte*>(node->src[Source::rows]->data),
                     static_cast<float*>(node->data));
    });
}

// The matrix tells how many experts there are.
void compute_sum(ggml_tensor* node, int thread, int n_threads, void* /*userdata*/) {
    const ExpertGroups& groups =
        groups_of(node, packed_weight(node->src[Source::first_matrix])->n_planes);
    const auto n_embd = static_cast<int>(node->ne[0]);
    const ThreadShare share(node->ne[1], thread, n_threads);
    for (std::int64_t row = share.begin; row < share.end; ++row) {
        sum_experts(groups, static_cast<const float*>(node->src[Source::rows]->data), n_embd,
                    static_cast<int>(row), 0, n_embd,
                    static_cast<float*>(node->data) + row * n_embd);
    }
}

template <std::size_t N>
ggml_tensor* custom_node(ggml_context* ctx,
                         ggml_type type,
                         std::int64_t n,
                         std::int64_t n_rows,
                         std::array<ggml_tensor*, N> sources,
                         ggml_custom_op_t compute,
                         const void* userdata = nullptr) {
    return ggml_custom_4d(ctx, type, n, n_rows, 1, 1, sources.data(), static_cast<int>(N), compute,
                          GGML_N_TASKS_MAX, const_cast<void*>(userdata));
}

ggml_tensor* build_packed(ggml_context* ctx, const ExpertLayer& layer, ProductInput& x) {
    const auto& [config, spec, weights, n_used, logits] = layer;
    const std::int64_t n_rows = logits->ne[1];
    const std::int64_t n_slots = n_rows * n_used;
    const auto takes_float_rows = [](const ggml_tensor* weight) {
        return input_form(weight->type) == InputForm::floats;
    };
    ggml_tensor* inputs = takes_float_rows(weights.expert_gate) ? x.floats(ctx) : x.quantised(ctx);
    ggml_tensor* chosen = custom_node(ctx, GGML_TYPE_I32, 2 * n_used, n_rows, std::array{logits},
                                      compute_choice, &spec);
    const bool is_float = takes_float_rows(weights.expert_down);
    const auto n_hidden =
        static_cast<std::int64_t>(row_bytes(packed_weight(weights.expert_down)->matrix));
    ggml_tensor* hidden = custom_node(
        ctx, is_float ? GGML_TYPE_F32 : GGML_TYPE_I8,
        is_float ? n_hidden / static_cast<std::int64_t>(sizeof(float)) : n_hidden, n_slots,
        std::array{chosen, inputs, weights.expert_gate, weights.expert_up, weights.expert_down,
                   weights.expert_gate_b, weights.expert_up_b},
        compute_gates, &config.activation);
    ggml_tensor* results = custom_node(
        ctx, GGML_TYPE_F32, config.n_embd, n_slots,
        std::array{chosen, hidden, weights.expert_down, weights.expert_down_b}, compute_down);
    return custom_node(ctx, GGML_TYPE_F32, config.n_embd, n_rows,
                       std::array{chosen, results, weights.expert_down}, compute_sum);
}

// --- ggml's operators, in libllama's order ---

// [1, n_used, n_rows]
ggml_tensor* build_weights(ggml_context* ctx,
                           const ExpertSpec& spec,
                           ggml_tensor* values,
                           ggml_tensor* ids) {
    const std::int64_t n_used = ids->ne[0];
    const std::int64_t n_rows = ids->ne[1];
    ggml_tensor* weights =
        ggml_get_rows(ctx, ggml_reshape_3d(ctx, values, 1, values->ne[0], values->ne[1]), ids);
    weights = ggml_reshape_2d(ctx, weights, n_used, n_rows);
    if (spec.gating == Gating::chosen) {
        weights = ggml_soft_max(ctx, weights);
    }
    if (spec.normalises) {
        ggml_tensor* sum = ggml_clamp(ctx, ggml_sum_rows(ctx, weights), kLeastWeightSum, INFINITY);
        weights = ggml_div(ctx, weights, sum);
    }
    return ggml_reshape_3d(ctx, weights, 1, n_used, n_rows);
}

// The product with the matrix of each chosen expert: [n_out, n_used, n_rows].
ggml_tensor* multiply_by_id(
    ggml_context* ctx, ggml_tensor* weight, ggml_tensor* bias, ggml_tensor* x, ggml_tensor* ids) {
    ggml_tensor* y = ggml_mul_mat_id(ctx, weight, x, ids);
    return bias != nullptr ? ggml_add_id(ctx, y, bias, ids) : y;
}

ggml_tensor* build_with_ggml(ggml_context* ctx, const ExpertLayer& layer, ProductInput& x) {
    const auto& [config, spec, weights, n_used, logits] = layer;
    const std::int64_t n_rows = logits->ne[1];
    ggml_tensor* values = spec.gating == Gating::softmax ? ggml_soft_max(ctx, logits) : logits;
    ggml_tensor* ids = ggml_argsort_top_k(ctx, values, n_used);
    ggml_tensor* of_experts = build_weights(ctx, spec, values, ids);
    ggml_tensor* inputs = ggml_reshape_3d(ctx, x.floats(ctx), config.n_embd, 1, n_rows);
    ggml_tensor* up = multiply_by_id(ctx, weights.expert_up, weights.expert_up_b, inputs, ids);
    ggml_tensor* gate =
        multiply_by_id(ctx, weights.expert_gate, weights.expert_gate_b, inputs, ids);
    ggml_tensor* hidden = ProductInput::gated(gate, up, config.activation).floats(ctx);
    ggml_tensor* results =
        multiply_by_id(ctx, weights.expert_down, weights.expert_down_b, hidden, ids);
    results = ggml_mul(ctx, results, of_experts);
    const auto of_rank = [&, n_embd = config.n_embd](int rank) {
        return ggml_view_2d(ctx, results, n_embd, n_rows, results->nb[2],
                            static_cast<std::size_t>(rank) * results->nb[1]);
    };
    ggml_tensor* sum = of_rank(0);
    for (int rank = 1; rank < n_used; ++rank) {
        sum = ggml_add(ctx, sum, of_rank(rank));
    }
    return n_used == 1 ? ggml_cont(ctx, sum) : sum;
}

}  // namespace

ggml_tensor* build_experts(ggml_context* ctx,
                           const ModelConfig& config,
                           int layer,
                           const LayerWeights& weights,
                           int n_allowed,
                           ProductInput& x) {
    const ExpertSpec& spec = *config.layer(layer).experts;
    const int n_used = n_experts_used(spec, n_allowed);
    ggml_tensor* logits = build_product(ctx, weights.router, x);
    if (weights.router_b != nullptr) {
        logits = ggml_add(ctx, logits, weights.router_b);
    }
    const auto build =
        packed_weight(weights.expert_down) != nullptr ? build_packed : build_with_ggml;
    return build(ctx, {config, spec, weights, n_used, logits}, x);
}

int max_expert_tensors(const ModelConfig& config) {
    constexpr int kOthers = 32;
    return config.n_experts_used() > 0 ? kOthers + 2 * config.n_experts_used() : 0;
}

}  // namespace knap
