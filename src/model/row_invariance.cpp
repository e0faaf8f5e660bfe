#include "model/row_invariance.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "ggml-backend.h"

#include "model/packed_weight.h"
#include "model/weights.h"

namespace knap {
namespace {

struct RowPromise {
    ggml_type type;
    WeightLayout layout;
    int n_rows;
};

constexpr RowPromise kPromises[] = {
    {GGML_TYPE_Q8_0, WeightLayout::plain, kAnyRows},
    {GGML_TYPE_Q4_0, WeightLayout::plain, kAnyRows},
    {GGML_TYPE_Q4_1, WeightLayout::plain, kAnyRows},
    {GGML_TYPE_Q5_0, WeightLayout::plain, kAnyRows},
    {GGML_TYPE_Q5_1, WeightLayout::plain, kAnyRows},
    {GGML_TYPE_MXFP4, WeightLayout::plain, kAnyRows},
    {GGML_TYPE_Q4_0, WeightLayout::repacked, kAnyRows},
    {GGML_TYPE_IQ4_NL, WeightLayout::repacked, kAnyRows},
    {GGML_TYPE_MXFP4, WeightLayout::repacked, kAnyRows},
    // From 8 rows on ggml uses a tiled kernel.
    {GGML_TYPE_Q2_K, WeightLayout::plain, 7},
    {GGML_TYPE_Q3_K, WeightLayout::plain, 7},
    {GGML_TYPE_Q4_K, WeightLayout::plain, 7},
    {GGML_TYPE_Q5_K, WeightLayout::plain, 7},
    {GGML_TYPE_Q6_K, WeightLayout::plain, 7},
    // From 4 rows on ggml multiplies four at a time.
    {GGML_TYPE_Q2_K, WeightLayout::repacked, 3},
    {GGML_TYPE_Q4_K, WeightLayout::repacked, 3},
};

// ggml multiplies these by one row after the other when it chooses among matrices, and the others
// with a tiled kernel where an expert has many rows.
constexpr ggml_type kRowByRow[] = {
    GGML_TYPE_F32,  GGML_TYPE_F16,  GGML_TYPE_BF16, GGML_TYPE_Q8_0,   GGML_TYPE_Q4_0,
    GGML_TYPE_Q4_1, GGML_TYPE_Q5_0, GGML_TYPE_Q5_1, GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4,
};
constexpr int kTiledFrom = 8;  // rows of one expert

// ggml-cuda multiplies quantised matrices by up to eight rows with one kernel, but from five rows
// on its threads split the sums differently.
constexpr int kCudaRows = 4;

}  // namespace

WeightLayout layout_of(const ggml_tensor* weight) {
    if (ggml_backend_buffer_is_host(weight->buffer)) {
        return packed_weight(weight) != nullptr ? WeightLayout::packed : WeightLayout::plain;
    }
    const std::string_view name = ggml_backend_buffer_name(weight->buffer);
    return name == "CPU_REPACK"       ? WeightLayout::repacked
           : name.starts_with("CUDA") ? WeightLayout::cuda
                                      : WeightLayout::other;
}

WeightLayout layout_of(const ggml_tensor* matrix, const ModelTensors& tensors) {
    return tensors.has_strips ? WeightLayout::strips : layout_of(matrix);
}

std::string_view to_string(WeightLayout layout) {
    switch (layout) {
        case WeightLayout::plain:
            return "plain";
        case WeightLayout::repacked:
            return "repacked";
        case WeightLayout::packed:
            return "packed";
        case WeightLayout::cuda:
            return "cuda";
        case WeightLayout::strips:
            return "strips";
        case WeightLayout::other:
            return "other";
    }
    return "";
}

int row_invariant_rows(ggml_type type, WeightLayout layout) {
    if (layout == WeightLayout::packed || layout == WeightLayout::strips) {
        return kAnyRows;
    }
    if (layout == WeightLayout::cuda) {
        return ggml_is_quantized(type) ? kCudaRows : 1;
    }
    const auto promise = std::ranges::find_if(kPromises, [&](const RowPromise& known) {
        return known.type == type && known.layout == layout;
    });
    return promise != std::end(kPromises) ? promise->n_rows : 1;
}

int row_invariant_rows_by_id(ggml_type type, WeightLayout layout) {
    switch (layout) {
        case WeightLayout::packed:
            return kAnyRows;
        case WeightLayout::plain:
            return std::ranges::find(kRowByRow, type) != std::end(kRowByRow) ? kAnyRows
                                                                             : kTiledFrom - 1;
        default:
            return 1;
    }
}

int row_invariant_rows(const Weights& weights) {
    const ModelTensors& tensors = weights.tensors();
    const auto matrix_rows = [&](const ggml_tensor* matrix) {
        return row_invariant_rows(matrix->type, layout_of(matrix, tensors));
    };
    int n_rows = matrix_rows(tensors.output);
    for (const LayerWeights& layer : tensors.layers) {
        for (const ggml_tensor* matrix : matrices(layer)) {
            n_rows = std::min(n_rows, matrix_rows(matrix));
        }
        for (const ggml_tensor* matrix : expert_matrices(layer)) {
            n_rows = std::min(n_rows, row_invariant_rows_by_id(matrix->type, layout_of(matrix)));
        }
    }
    return n_rows;
}

}  // namespace knap
