#include "tools/check/row_check.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"

#include "base/error.h"
#include "graph/attention/attention_policy.h"
#include "graph/products.h"
#include "model/row_invariance.h"
#include "model/weight_type.h"
#include "runtime/engine_impl.h"
#include "tools/check/direct_pass.h"

namespace knap {
namespace {

// The row counts at which ggml is known to switch kernels, and their neighbours.
constexpr int kProductRows[] = {2, 3, 4, 7, 8, 16};
constexpr int kMaxProductRows = *std::ranges::max_element(kProductRows);
constexpr int kMaxPassRows = 17;  // every count from 2 up to this is tried
constexpr int kPassTokens = 48;
// Share of the progress that the products take; whole passes take the rest.
constexpr double kProductShare = 0.3;

struct MatrixGroup {
    Backend* backend;
    ggml_tensor* first;
    int n_matrices;
};

bool has_same_kind(const ggml_tensor* a, const ggml_tensor* b) {
    return a->type == b->type && a->ne[0] == b->ne[0] && a->ne[1] == b->ne[1] &&
           layout_of(a) == layout_of(b);
}

// Every weight matrix, grouped by device, type, shape and layout.
std::vector<MatrixGroup> group_matrices(const ModelTensors& tensors, const LayerMap& layers) {
    std::vector<MatrixGroup> groups;
    const auto add = [&](Backend* backend, ggml_tensor* matrix) {
        const auto group = std::ranges::find_if(groups, [&](const MatrixGroup& g) {
            return g.backend == backend && has_same_kind(g.first, matrix);
        });
        if (group == groups.end()) {
            groups.push_back({backend, matrix, 1});
        } else {
            ++group->n_matrices;
        }
    };
    for (int layer = 0; layer < layers.n_layers(); ++layer) {
        for (ggml_tensor* matrix : matrices(tensors.layers[static_cast<std::size_t>(layer)])) {
            add(layers.of_layer(layer).backend, matrix);
        }
    }
    add(layers.last().backend, tensors.output);
    return groups;
}

std::vector<float> random_rows(std::int64_t n_in, int n_rows) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    std::vector<float> rows(static_cast<std::size_t>(n_in) * static_cast<std::size_t>(n_rows));
    std::ranges::generate(rows, [&] { return normal(engine); });
    return rows;
}

// `rows` [n_in, n_rows] times the matrix in one product: [n_out, n_rows].
std::vector<float> multiply(Backend& backend, ggml_tensor* matrix, std::span<const float> rows) {
    const std::int64_t n_rows = static_cast<std::int64_t>(rows.size()) / matrix->ne[0];
    const ggml_context_ptr context(
        ggml_init({4 * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true}));
    ggml_cgraph* graph = ggml_new_graph(context.get());
    ggml_tensor* x = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, matrix->ne[0], n_rows);
    ggml_set_input(x);
    ProductInput input = ProductInput::rows(x);
    ggml_tensor* y = build_product(context.get(), matrix, input);
    ggml_set_output(y);
    ggml_build_forward_expand(graph, y);
    const WorkerWait wait = backend.waiting();
    const ggml_gallocr_ptr allocator(ggml_gallocr_new(backend.buffer_type()));
    if (!ggml_gallocr_alloc_graph(allocator.get(), graph)) {
        fail("memory: expected room for the product of a matrix and ", n_rows, " rows");
    }
    backend.write(x, rows.data(), 0, ggml_nbytes(x));
    backend.compute(graph);
    std::vector<float> result(static_cast<std::size_t>(ggml_nelements(y)));
    backend.read(y, result.data(), 0, ggml_nbytes(y));
    backend.wait();
    return result;
}

// Compares bits, not values, so a NaN equals itself.
bool has_same_bits(std::span<const float> a, std::span<const float> b) {
    return std::memcmp(a.data(), b.data(), b.size_bytes()) == 0;
}

RowAgreement check_product(Backend& backend, ggml_tensor* matrix) {
    const auto n_in = static_cast<std::size_t>(matrix->ne[0]);
    const std::vector<float> rows = random_rows(matrix->ne[0], kMaxProductRows);
    std::vector<float> alone;  // [n_out, kMaxProductRows]
    for (std::size_t i = 0; i < kMaxProductRows; ++i) {
        const auto row = multiply(backend, matrix, std::span(rows).subspan(i * n_in, n_in));
        alone.insert(alone.end(), row.begin(), row.end());
    }
    RowAgreement agreement{.n_tested = kMaxProductRows};
    for (const int n_rows : kProductRows) {
        const auto n = static_cast<std::size_t>(n_rows);
        if (!has_same_bits(alone, multiply(backend, matrix, std::span(rows).first(n * n_in)))) {
            break;
        }
        agreement.n_exact = n_rows;
    }
    return agreement;
}

ProductRows check_group(const MatrixGroup& group) {
    return {
        .type = type_label(group.first->type),
        .layout = std::string(to_string(layout_of(group.first))),
        .n_in = group.first->ne[0],
        .n_out = group.first->ne[1],
        .n_matrices = group.n_matrices,
        .rows = check_product(*group.backend, group.first),
    };
}

// kPassTokens tokens, with the text repeated if it is short.
std::vector<Token> pass_text(std::span<const Token> tokens) {
    std::vector<Token> text;
    for (std::size_t i = 0; i < kPassTokens; ++i) {
        text.push_back(tokens[i % tokens.size()]);
    }
    return text;
}

// The logits of every row when `tokens` are fed in passes of `n_rows`.
std::vector<float> feed_in_passes(DirectPass& pass, std::span<const Token> tokens, int n_rows) {
    pass.restart();
    std::vector<float> logits;
    for (auto left = tokens; !left.empty();) {
        const auto n = std::min(left.size(), static_cast<std::size_t>(n_rows));
        const auto rows = pass.feed(left.first(n));
        logits.insert(logits.end(), rows.begin(), rows.end());
        left = left.subspan(n);
    }
    return logits;
}

// Returns nullopt when cancelled.
std::optional<RowAgreement> check_passes(Engine::Impl& engine,
                                         std::span<const Token> tokens,
                                         const CheckObserver& observer) {
    DirectPass pass(engine, static_cast<int>(tokens.size()), kMaxPassRows);
    const std::vector<float> alone = feed_in_passes(pass, tokens, 1);
    RowAgreement agreement{.n_tested = kMaxPassRows};
    for (int n_rows = 2; n_rows <= kMaxPassRows; ++n_rows) {
        if (observer.cancelled()) {
            return std::nullopt;
        }
        if (!has_same_bits(alone, feed_in_passes(pass, tokens, n_rows))) {
            break;
        }
        agreement.n_exact = n_rows;
        observer.progress(kProductShare + (1 - kProductShare) * n_rows / kMaxPassRows);
    }
    return agreement;
}

}  // namespace

std::optional<RowReport> check_rows(Engine& engine,
                                    std::span<const Token> tokens,
                                    const CheckObserver& observer) {
    Engine::Impl& parts = impl_of(engine);
    RowReport report;
    report.attention_path = std::string(parts.limits().attention);
    const ModelTensors& tensors = parts.weights->tensors();
    // ggml has no products with strips: whole passes are all there is to check.
    const std::vector<MatrixGroup> groups =
        tensors.has_strips ? std::vector<MatrixGroup>{} : group_matrices(tensors, parts.layers());
    for (const MatrixGroup& group : groups) {
        if (observer.cancelled()) {
            return std::nullopt;
        }
        report.products.push_back(check_group(group));
        observer.progress(kProductShare * static_cast<double>(report.products.size()) /
                          static_cast<double>(groups.size()));
    }
    const auto passes = check_passes(parts, pass_text(tokens), observer);
    if (!passes) {
        return std::nullopt;
    }
    report.passes = *passes;
    return report;
}

}  // namespace knap
