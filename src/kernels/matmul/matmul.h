// Products of rows with packed matrices, and the small operators that make their inputs.
//
// Quantised weights are multiplied in integers: inputs are rounded to eight bits, 32 at a time with
// one scale, as ggml does, and every 32 products are summed exactly. The sums of a row are added up
// in the order of its inputs, whatever rows and matrices are computed beside it. So a row's result
// has the same bits alone and among others, on any number of threads, and by any of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/isa.h"
#include "kernels/matmul/packed_matrix.h"

namespace knap {

// 32 inputs of a row.
struct QuantisedBlock {
    std::int8_t values[kQuantBlock];
    float scale;
    float scaled_sum;      // scale times the sum of the values
    std::int32_t less[2];  // minus the sum of the first and of the second 16 values

    // Minus the sum of all values; unsigned, since where values are no numbers sums may overflow.
    std::int32_t less_of_all() const {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(less[0]) +
                                         static_cast<std::uint32_t>(less[1]));
    }
};
static_assert(sizeof(QuantisedBlock) == 48);

// How the rows that a matrix is multiplied with are given.
enum class InputForm {
    quantised,  // QuantisedBlock [n_in / 32]
    floats,     // f32 [n_in]
};
InputForm input_form(ggml_type type);
std::size_t input_row_bytes(InputForm form, int n_in);

// Some groups of rows of a matrix, times the rows of a pass.
struct Product {
    const PackedMatrix* matrix = nullptr;
    int first_group = 0;
    int n_groups = 0;
    const std::byte* inputs = nullptr;  // rows in the matrix's form, one behind another
    int n_rows = 0;
    // out[row * stride + i] is output i of the matrix; to it is added what `added` has at the same
    // place, where that is not null.
    float* out = nullptr;
    const float* added = nullptr;
    std::ptrdiff_t stride = 0;
};

struct MatmulKernel {
    Isa isa;
    void (*multiply)(const Product& product);
    // x [32 * blocks.size()]
    void (*quantise)(const float* x, std::span<QuantisedBlock> blocks);
    // Blocks [first, first + blocks.size()) of the row x [n], normalised and weighed.
    void (*norm_and_quantise)(const float* x,
                              const float* weight,
                              int n,
                              float eps,
                              int first,
                              std::span<QuantisedBlock> blocks);
    // silu(gate) * up
    void (*gate_and_quantise)(const float* gate, const float* up, std::span<QuantisedBlock> blocks);
};

// Every kernel that may run on this machine, the fastest first; the last is the plain reference.
std::span<const MatmulKernel> matmul_kernels();
// Whether the fastest of them is worth choosing over ggml's operators.
bool has_fast_matmul();

}  // namespace knap
