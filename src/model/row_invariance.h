// The largest batch that is bit-identical to single-row passes. ggml uses other kernels for many
// rows than for few, and for most weight types they round differently. The limits here were
// measured on x86 (docs/ggml-facts.md) and on an H200 (docs/results/h200.md); anything not measured
// counts as one row. They concern products with weights only; for attention see
// docs/architecture.md.
#pragma once

#include <limits>
#include <string_view>

#include "ggml.h"

namespace knap {

class Weights;
struct ModelTensors;

inline constexpr int kAnyRows = std::numeric_limits<int>::max();

enum class WeightLayout {
    plain,     // as in the file
    repacked,  // ggml's CPU_REPACK
    packed,    // the layout of our kernels
    cuda,      // as in the file, on an NVIDIA GPU
    strips,    // the layout of our CUDA kernels
    other,
};
// Of a tensor that is not in strips: only its model knows of those.
WeightLayout layout_of(const ggml_tensor* weight);
// Of a matrix of this model.
WeightLayout layout_of(const ggml_tensor* matrix, const ModelTensors& tensors);
// "plain", "repacked", "packed", "cuda", "strips", "other"
std::string_view to_string(WeightLayout layout);

// For products with one matrix, and for a whole model: the minimum over its matrices. The embedding
// lookup, norms and biases never mix rows and do not count.
int row_invariant_rows(ggml_type type, WeightLayout layout);
int row_invariant_rows(const Weights& weights);
// For products with the matrices of experts, each row with those that it has chosen.
int row_invariant_rows_by_id(ggml_type type, WeightLayout layout);

}  // namespace knap
