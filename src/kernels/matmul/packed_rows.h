// Rows in the form that packed matrices take, and products of some groups of such a matrix with
// them.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/matmul/matmul.h"

namespace knap {

// The kernel that everything here runs.
const MatmulKernel& matmul_kernel();

// Of a row that the matrix is multiplied with.
std::size_t row_bytes(const PackedMatrix& matrix);
bool takes_floats(const PackedMatrix& matrix);
std::span<QuantisedBlock> blocks_at(std::byte* row, int n_in);

// Puts a row of `n` numbers into the form that a matrix takes: floats or not.
void copy_row(const float* x, int n, bool is_float, std::byte* out);

// Some groups of a matrix as a matrix.
PackedMatrix slice(const PackedMatrix& matrix, int first_group, int n_groups);

// Groups [first_group, first_group + n_groups) of a matrix times `n_rows` rows, plus the bias.
struct GroupProduct {
    const PackedMatrix& matrix;
    const float* bias = nullptr;  // [n_out]; null: none
    int first_group = 0;
    int n_groups = 0;
    const std::byte* inputs = nullptr;
    int n_rows = 0;
    float* out = nullptr;               // rows that begin with the first group's numbers
    int width = 0;                      // of a row
    std::span<const std::byte> next{};  // as in Product
};
void multiply_groups(const GroupProduct& product);

// activation(gates) * ups for rows of `width` numbers, those of groups [first_group, ...), into
// rows in the form that `down` takes.
struct GatedRows {
    Activation activation = Activation::silu;
    const float* gates = nullptr;
    const float* ups = nullptr;
    int width = 0;
    int n_rows = 0;
    const PackedMatrix& down;
    int first_group = 0;
    std::byte* out = nullptr;
};
void gate_rows(const GatedRows& rows);

}  // namespace knap
