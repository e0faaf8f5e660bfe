// Up to how many rows a pass may have while every row keeps the bits that it has in a pass of its
// own. ggml takes other kernels for many rows than for few, and for most weight types these round
// otherwise. What is said here was measured on x86 (docs/ggml-facts.md) and on an H200
// (docs/results/h200.md); what was not measured counts as one row. It is about products with
// weights: attention keeps its own promise (docs/architecture.md).
#pragma once

#include <limits>
#include <string_view>

#include "ggml.h"

namespace knap {

class Weights;

inline constexpr int kAnyRows = std::numeric_limits<int>::max();

enum class WeightLayout {
    plain,     // as in the file
    repacked,  // ggml's CPU_REPACK
    packed,    // that of our kernels
    cuda,      // as in the file, on an NVIDIA GPU
    other,
};
WeightLayout layout_of(const ggml_tensor* weight);
// "plain", "repacked", "packed", "cuda", "other"
std::string_view to_string(WeightLayout layout);

// For products with one matrix, and for a whole model: the least of its matrices. An embedding
// that is only looked up, norms and biases never mix rows and do not count.
int row_invariant_rows(ggml_type type, WeightLayout layout);
int row_invariant_rows(const Weights& weights);

}  // namespace knap
