#include "graph/products.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/error.h"
#include "graph/custom_node.h"
#include "kernels/matmul/packed_rows.h"
#include "model/packed_weight.h"

namespace knap {
namespace {

constexpr std::size_t kMaxJoined = 3;

// Calls visit(row, first block, blocks) for every piece of a row that falls into a thread's share
// of all blocks of `node`: few rows are shared out in pieces.
template <typename Visit>
void for_each_piece(ggml_tensor* node, int thread, int n_threads, Visit visit) {
    const auto per_row = node->ne[0] / static_cast<std::int64_t>(sizeof(QuantisedBlock));
    auto* blocks = static_cast<QuantisedBlock*>(node->data);
    const ThreadShare share(per_row * node->ne[1], thread, n_threads);
    for (std::int64_t at = share.begin; at < share.end;) {
        const std::int64_t row = at / per_row;
        const std::int64_t end = std::min(share.end, (row + 1) * per_row);
        visit(row, at % per_row, std::span(blocks + at, static_cast<std::size_t>(end - at)));
        at = end;
    }
}

void quantise(ggml_tensor* node, int thread, int n_threads, void* /*userdata*/) {
    for_each_piece(node, thread, n_threads,
                   [&](std::int64_t row, std::int64_t first, std::span<QuantisedBlock> blocks) {
                       matmul_kernel().quantise(float_row(node->src[0], row) + first * kQuantBlock,
                                                blocks);
                   });
}

void norm_and_quantise(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const ggml_tensor* x = node->src[0];
    const auto* weight = static_cast<const float*>(node->src[1]->data);
    for_each_piece(node, thread, n_threads,
                   [&](std::int64_t row, std::int64_t first, std::span<QuantisedBlock> blocks) {
                       matmul_kernel().norm_and_quantise(
                           float_row(x, row), weight, static_cast<int>(x->ne[0]),
                           *static_cast<const float*>(userdata), static_cast<int>(first), blocks);
                   });
}

void gate_and_quantise(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    for_each_piece(node, thread, n_threads,
                   [&](std::int64_t row, std::int64_t first, std::span<QuantisedBlock> blocks) {
                       matmul_kernel().gate_and_quantise(
                           *static_cast<const Activation*>(userdata),
                           float_row(node->src[0], row) + first * kQuantBlock,
                           float_row(node->src[1], row) + first * kQuantBlock, blocks);
                   });
}

// The groups of several matrices, shared over the threads as if they were one.
void multiply(ggml_tensor* node,
              int thread,
              int n_threads,
              std::span<ggml_tensor* const> weights,
              const ggml_tensor* added) {
    const ggml_tensor* inputs = node->src[0];
    std::int64_t n_groups = 0;
    for (const ggml_tensor* weight : weights) {
        n_groups += packed_weight(weight)->matrix.n_groups();
    }
    const ThreadShare share(n_groups, thread, n_threads);
    std::int64_t first_group = 0;  // of the matrix, in all
    std::int64_t first_out = 0;
    for (const ggml_tensor* weight : weights) {
        const PackedMatrix& matrix = packed_weight(weight)->matrix;
        const std::int64_t begin = std::max(share.begin, first_group);
        const std::int64_t end = std::min(share.end, first_group + matrix.n_groups());
        if (begin < end) {
            matmul_kernel().multiply({
                .matrix = &matrix,
                .first_group = static_cast<int>(begin - first_group),
                .n_groups = static_cast<int>(end - begin),
                .inputs = static_cast<const std::byte*>(inputs->data),
                .n_rows = static_cast<int>(inputs->ne[1]),
                .out = static_cast<float*>(node->data) + first_out,
                .added = added != nullptr ? static_cast<const float*>(added->data) : nullptr,
                .stride = node->ne[0],
            });
        }
        first_group += matrix.n_groups();
        first_out += matrix.n_out;
    }
}

// Sources: the rows, then the matrices.
void compute_product(ggml_tensor* node, int thread, int n_threads, void* /*userdata*/) {
    const auto* last = std::find(node->src + 1, node->src + 1 + kMaxJoined, nullptr);
    multiply(node, thread, n_threads, {node->src + 1, last}, nullptr);
}

// Sources: the rows, one matrix, what is added.
void compute_sum(ggml_tensor* node, int thread, int n_threads, void* /*userdata*/) {
    multiply(node, thread, n_threads, {node->src + 1, 1}, node->src[2]);
}

ggml_tensor* custom_node(ggml_context* ctx,
                         ggml_type type,
                         std::int64_t n,
                         std::int64_t n_rows,
                         std::span<ggml_tensor*> sources,
                         ggml_custom_op_t compute,
                         const void* userdata = nullptr) {
    return ggml_custom_4d(ctx, type, n, n_rows, 1, 1, sources.data(),
                          static_cast<int>(sources.size()), compute, GGML_N_TASKS_MAX,
                          const_cast<void*>(userdata));  // ggml passes it back as it is
}

ggml_tensor* gated_floats(ggml_context* ctx,
                          Activation activation,
                          ggml_tensor* gate,
                          ggml_tensor* up) {
    switch (activation) {
        case Activation::silu:
            break;
        case Activation::gelu:
            return ggml_geglu_split(ctx, gate, up);
        case Activation::clamped_swiglu:
            return ggml_swiglu_oai(ctx, gate, up, kSwigluAlpha, kSwigluLimit);
    }
    return ggml_swiglu_split(ctx, gate, up);
}

ggml_tensor* input_for(ggml_context* ctx, const ggml_tensor* weight, ProductInput& x) {
    return input_form(weight->type) == InputForm::floats ? x.floats(ctx) : x.quantised(ctx);
}

}  // namespace

ProductInput ProductInput::rows(ggml_tensor* x) {
    return {Kind::rows, x, nullptr, nullptr};
}

ProductInput ProductInput::normed(ggml_tensor* x, ggml_tensor* weight, const float& eps) {
    return {Kind::normed, x, weight, &eps};
}

ProductInput ProductInput::gated(ggml_tensor* gate, ggml_tensor* up, const Activation& activation) {
    return {Kind::gated, gate, up, &activation};
}

ggml_tensor* ProductInput::floats(ggml_context* ctx) {
    if (floats_ != nullptr) {
        return floats_;
    }
    switch (kind_) {
        case Kind::rows:
            floats_ = first_;
            break;
        case Kind::normed:  // adjacent: ggml fuses the two
            floats_ = ggml_mul(
                ctx, ggml_rms_norm(ctx, first_, *static_cast<const float*>(setting_)), second_);
            break;
        case Kind::gated:
            floats_ = gated_floats(ctx, *static_cast<const Activation*>(setting_), first_, second_);
            break;
    }
    return floats_;
}

ggml_tensor* ProductInput::quantised(ggml_context* ctx) {
    if (quantised_ != nullptr) {
        return quantised_;
    }
    std::array sources{first_, second_};
    const auto bytes = static_cast<std::int64_t>(
        input_row_bytes(InputForm::quantised, static_cast<int>(first_->ne[0])));
    const auto make = [&](std::size_t n_sources, ggml_custom_op_t compute) {
        return custom_node(ctx, GGML_TYPE_I8, bytes, first_->ne[1],
                           std::span(sources).first(n_sources), compute, setting_);
    };
    switch (kind_) {
        case Kind::rows:
            quantised_ = make(1, quantise);
            break;
        case Kind::normed:
            quantised_ = make(2, norm_and_quantise);
            break;
        case Kind::gated:
            quantised_ = make(2, gate_and_quantise);
            break;
    }
    return quantised_;
}

ggml_tensor* build_product(ggml_context* ctx,
                           ggml_tensor* weight,
                           ProductInput& x,
                           ggml_tensor* added) {
    if (packed_weight(weight) == nullptr) {
        ggml_tensor* y = ggml_mul_mat(ctx, weight, x.floats(ctx));
        return added != nullptr ? ggml_add(ctx, added, y) : y;
    }
    if (added == nullptr) {
        return build_joined_product(ctx, {&weight, 1}, x);
    }
    KNAP_ASSERT(ggml_is_contiguous(added), "what is added lies as the result does");
    std::array sources{input_for(ctx, weight, x), weight, added};
    return custom_node(ctx, GGML_TYPE_F32, weight->ne[1], sources[0]->ne[1], sources, compute_sum);
}

bool can_join_products(std::span<ggml_tensor* const> weights) {
    const InputForm form = input_form(weights.front()->type);
    return weights.size() <= kMaxJoined &&
           std::ranges::all_of(weights, [&](const ggml_tensor* weight) {
               return packed_weight(weight) != nullptr && input_form(weight->type) == form;
           });
}

ggml_tensor* build_joined_product(ggml_context* ctx,
                                  std::span<ggml_tensor* const> weights,
                                  ProductInput& x) {
    KNAP_ASSERT(can_join_products(weights), "matrices that one node can multiply");
    std::array<ggml_tensor*, 1 + kMaxJoined> sources{input_for(ctx, weights.front(), x)};
    std::int64_t n_out = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        sources[1 + i] = weights[i];
        n_out += weights[i]->ne[1];
    }
    return custom_node(ctx, GGML_TYPE_F32, n_out, sources[0]->ne[1],
                       std::span(sources).first(1 + weights.size()), compute_product);
}

}  // namespace knap
