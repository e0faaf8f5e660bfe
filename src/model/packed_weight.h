// Matrices in the layout of our own kernels, hung on the tensors that stand for them. Such a tensor
// keeps the name, type and shape that the file gives it, but only products of ours can read it
// (graph/products).
#pragma once

#include "ggml.h"

#include "kernels/matmul/packed_matrix.h"

namespace knap {

struct PackedWeight {
    PackedMatrix matrix;
    const std::byte* stored = nullptr;  // the rows in the mapped file, as they were
};

// Null when the tensor lies in another layout.
const PackedWeight* packed_weight(const ggml_tensor* tensor);
// Hangs `weight`, which must outlive the tensor's use, on a tensor of host memory.
void set_packed_weight(ggml_tensor* tensor, const PackedWeight& weight);

}  // namespace knap
