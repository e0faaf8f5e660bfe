#include "kernels/matmul/packed_rows.h"

#include <algorithm>
#include <array>
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

void multiply_groups(const GroupProduct& product) {
    const PackedMatrix part = slice(product.matrix, product.first_group, product.n_groups);
    matmul_kernel().multiply({.matrix = &part,
                              .n_groups = part.n_groups(),
                              .inputs = product.inputs,
                              .n_rows = product.n_rows,
                              .out = product.out,
                              .stride = product.width,
                              .next = product.next});
    if (product.bias != nullptr) {
        const float* added = product.bias + std::ptrdiff_t{product.first_group} * kGroupRows;
        for (int row = 0; row < product.n_rows; ++row) {
            add_row(added, part.n_out, product.out + std::ptrdiff_t{row} * product.width);
        }
    }
}

void gate_rows(const GatedRows& rows) {
    static_assert(kGroupRows == kQuantBlock, "a group of gate and up is a block of `down`");
    const int n_in = rows.down.n_in;
    const int first = rows.first_group * kGroupRows;
    const int n = std::min(rows.width, n_in - first);
    const int n_blocks = n / kQuantBlock;
    const auto gates = [&](int row) { return rows.gates + std::ptrdiff_t{row} * rows.width; };
    const auto ups = [&](int row) { return rows.ups + std::ptrdiff_t{row} * rows.width; };
    const auto out = [&](int row) {
        return rows.out + static_cast<std::size_t>(row) * row_bytes(rows.down);
    };
    if (takes_floats(rows.down)) {
        for (int row = 0; row < rows.n_rows; ++row) {
            matmul_kernel().gate(rows.activation, gates(row), ups(row), n,
                                 reinterpret_cast<float*>(out(row)) + first);
        }
        return;
    }
    const auto blocks = [&](int row) {
        return blocks_at(out(row), n_in)
            .subspan(static_cast<std::size_t>(rows.first_group),
                     static_cast<std::size_t>(n_blocks));
    };
    // Short rows that follow each other are one long row to a kernel, which is faster with many
    // blocks than with a few.
    constexpr int kMostJoined = 64;
    std::array<QuantisedBlock, kMostJoined> joined;
    const int n_joined = n == rows.width ? std::max(kMostJoined / n_blocks, 1) : 1;  // rows
    for (int first_row = 0; first_row < rows.n_rows; first_row += n_joined) {
        const int n_rows = std::min(n_joined, rows.n_rows - first_row);
        const auto all = n_rows == 1
                             ? blocks(first_row)
                             : std::span(joined).first(static_cast<std::size_t>(n_rows * n_blocks));
        matmul_kernel().gate_and_quantise(rows.activation, gates(first_row), ups(first_row), all);
        for (int row = 0; n_rows > 1 && row < n_rows; ++row) {
            std::ranges::copy(all.subspan(static_cast<std::size_t>(row * n_blocks),
                                          static_cast<std::size_t>(n_blocks)),
                              blocks(first_row + row).begin());
        }
    }
}

}  // namespace knap
