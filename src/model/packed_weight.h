// Attaches matrices in the layout of our kernels to the tensors that represent them. Such a tensor
// keeps the name, type and shape it has in the file, but only our own products can read it
// (graph/products).
#pragma once

#include "ggml.h"

#include "kernels/matmul/packed_matrix.h"

namespace knap {

struct PackedWeight {
    PackedMatrix matrix;                // of experts: that of the first one
    const std::byte* stored = nullptr;  // the original rows in the mapped file
    int n_planes = 1;                   // matrices one after the other: one for each expert

    // The matrix of an expert.
    PackedMatrix plane(int i) const;
};

// Returns null when the tensor has another layout.
const PackedWeight* packed_weight(const ggml_tensor* tensor);
// Attaches `weight`, which must outlive the tensor's use, to a tensor in host memory.
void set_packed_weight(ggml_tensor* tensor, const PackedWeight& weight);

}  // namespace knap
