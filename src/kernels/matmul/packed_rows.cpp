#include "kernels/matmul/packed_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/row_math.h"

namespace knap {

const MatmulKernel& matmul_kernel() {
    return matmul_kernels().front();
}

std::size_t row_bytes(const PackedMatrix& matrix) {
    return input_row_bytes(input_form(matrix.type), matrix.n_in);
}

bool takes_floats(const PackedMatrix& matrix) {
    return input_form(matrix.type) == InputForm::floats;
}

std::span<QuantisedBlock> blocks_at(std::byte* row, int n_in) {
    return {reinterpret_cast<QuantisedBlock*>(row), static_cast<std::size_t>(n_in / kQuantBlock)};
}

void copy_row(const float* x, int n, bool is_float, std::byte* out) {
    if (is_float) {
        std::memcpy(out, x, static_cast<std::size_t>(n) * sizeof(float));
    } else {
        matmul_kernel().quantise(x, blocks_at(out, n));
    }
}

PackedMatrix slice(const PackedMatrix& matrix, int first_group, int n_groups) {
    PackedMatrix part = matrix;
    part.data += group_bytes(matrix.type, matrix.n_in) * static_cast<std::size_t>(first_group);
    part.n_out = std::min(n_groups * kGroupRows, matrix.n_out - first_group * kGroupRows);
    return part;
}

void multiply_groups(const PackedMatrix& matrix,
                     const float* bias,
                     int first_group,
                     int n_groups,
                     const std::byte* inputs,
                     int n_rows,
                     float* out,
                     int width) {
    const PackedMatrix part = slice(matrix, first_group, n_groups);
    matmul_kernel().multiply({.matrix = &part,
                              .n_groups = part.n_groups(),
                              .inputs = inputs,
                              .n_rows = n_rows,
                              .out = out,
                              .stride = width});
    if (bias != nullptr) {
        const float* added = bias + static_cast<std::ptrdiff_t>(first_group) * kGroupRows;
        for (int row = 0; row < n_rows; ++row) {
            add_row(added, part.n_out, out + static_cast<std::ptrdiff_t>(row) * width);
        }
    }
}

void gate_rows(Activation activation,
               const float* gates,
               const float* ups,
               int width,
               int n_rows,
               const PackedMatrix& down,
               int first_group,
               std::byte* out) {
    static_assert(kGroupRows == kQuantBlock, "a group of gate and up is a block of `down`");
    const int first = first_group * kGroupRows;
    const int n = std::min(width, down.n_in - first);
    for (int row = 0; row < n_rows; ++row) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(row) * width;
        std::byte* to = out + static_cast<std::size_t>(row) * row_bytes(down);
        if (takes_floats(down)) {
            matmul_kernel().gate(activation, gates + at, ups + at, n,
                                 reinterpret_cast<float*>(to) + first);
        } else {
            matmul_kernel().gate_and_quantise(
                activation, gates + at, ups + at,
                blocks_at(to, down.n_in)
                    .subspan(static_cast<std::size_t>(first_group),
                             static_cast<std::size_t>(n / kQuantBlock)));
        }
    }
}

}  // namespace knap
