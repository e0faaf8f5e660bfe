// Products of rows and packed matrices, and the small operators that prepare their inputs.
//
// Quantised weights are multiplied in integers. As in ggml, inputs are rounded to eight bits, 32 at
// a time with one scale, and every 32 products are summed exactly. These sums are added in the
// order of the row's inputs, whatever rows and matrices are computed beside it. So a row's result
// is batch-invariant, and the same on any number of threads and in every kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/activation.h"
#include "kernels/isa.h"
#include "kernels/matmul/packed_matrix.h"

namespace knap {

// 32 inputs of a row.
struct QuantisedBlock {
    std::int8_t values[kQuantBlock];
    float scale;
    float scaled_sum;      // scale times the sum of the values
    std::int32_t less[2];  // minus the sum of the first and of the second 16 values

    // Minus the sum of all values. Unsigned arithmetic, because NaN inputs can make the sum
    // overflow.
    std::int32_t less_of_all() const {
        return static_cast<std::int32_t>(static_cast<std::uint32_t>(less[0]) +
                                         static_cast<std::uint32_t>(less[1]));
    }
};
static_assert(sizeof(QuantisedBlock) == 48);

// The format of the rows that a matrix is multiplied with.
enum class InputForm {
    quantised,  // QuantisedBlock [n_in / 32]
    floats,     // f32 [n_in]
};
InputForm input_form(ggml_type type);
std::size_t input_row_bytes(InputForm form, int n_in);

// Some row groups of a matrix, times the rows of a pass.
struct Product {
    const PackedMatrix* matrix = nullptr;
    int first_group = 0;
    int n_groups = 0;
    const std::byte* inputs = nullptr;  // rows in the matrix's input form, contiguous
    int n_rows = 0;
    // out[row * stride + i] is output i of the matrix, plus added[row * stride + i] unless `added`
    // is null.
    float* out = nullptr;
    const float* added = nullptr;
    std::ptrdiff_t stride = 0;
    // What the thread reads after these groups, to be fetched meanwhile. Empty: what lies behind
    // them.
    std::span<const std::byte> next{};

    std::span<const std::byte> next_of(int group) const {
        return group == first_group + n_groups - 1 ? next : std::span<const std::byte>();
    }
};

struct MatmulKernel {
    Isa isa;
    void (*multiply)(const Product& product);
    // x [32 * blocks.size()]
    void (*quantise)(const float* x, std::span<QuantisedBlock> blocks);
    // Blocks [first, first + blocks.size()) of the row x [n], RMS-normalised and multiplied by
    // `weight`.
    void (*norm_and_quantise)(const float* x,
                              const float* weight,
                              int n,
                              float eps,
                              int first,
                              std::span<QuantisedBlock> blocks);
    // activation(gate) * up
    void (*gate_and_quantise)(Activation activation,
                              const float* gate,
                              const float* up,
                              std::span<QuantisedBlock> blocks);
    // The same as floats: out [n]
    void (*gate)(Activation activation, const float* gate, const float* up, int n, float* out);
};

// Every kernel that may run on this machine, fastest first. The last is the plain reference.
std::span<const MatmulKernel> matmul_kernels();
// True when the fastest of them is worth choosing over ggml's operators.
bool has_fast_matmul();

}  // namespace knap
