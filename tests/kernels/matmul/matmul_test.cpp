#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace knap::matmul_test {
namespace {

constexpr ggml_type kTypes[] = {
    GGML_TYPE_Q4_0,   GGML_TYPE_Q4_1,   GGML_TYPE_Q5_0,  GGML_TYPE_Q5_1,
    GGML_TYPE_Q8_0,   GGML_TYPE_IQ4_NL, GGML_TYPE_MXFP4, GGML_TYPE_Q2_K,
    GGML_TYPE_Q3_K,   GGML_TYPE_Q4_K,   GGML_TYPE_Q5_K,  GGML_TYPE_Q6_K,
    GGML_TYPE_IQ4_XS, GGML_TYPE_F16,    GGML_TYPE_BF16,  GGML_TYPE_F32,
};

std::vector<float> random_numbers(std::size_t n, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(n);
    std::ranges::generate(numbers, [&] { return normal(engine); });
    return numbers;
}

// Zeroed memory, aligned for vector loads.
class AlignedBytes {
  public:
    explicit AlignedBytes(std::size_t n)
        : data_(static_cast<std::byte*>(::operator new(n, kAlignment))) {
        std::memset(data_, 0, n);
    }
    ~AlignedBytes() { ::operator delete(data_, kAlignment); }
    AlignedBytes(const AlignedBytes&) = delete;
    AlignedBytes& operator=(const AlignedBytes&) = delete;
    std::byte* data() const { return data_; }

  private:
    static constexpr std::align_val_t kAlignment{64};
    std::byte* data_;
};

// A matrix of weights, random unless given: as stored in a file, as numbers, and packed.
struct Weights {
    Weights(ggml_type type, int n_in, int n_out)
        : Weights(
              type,
              n_in,
              n_out,
              random_numbers(static_cast<std::size_t>(n_in) * static_cast<std::size_t>(n_out), 7)) {
    }

    Weights(ggml_type type, int n_in, int n_out, const std::vector<float>& exact)
        : stored(ggml_row_size(type, n_in) * static_cast<std::size_t>(n_out)),
          numbers(static_cast<std::size_t>(n_in) * static_cast<std::size_t>(n_out)),
          memory(packed_bytes(type, n_in, n_out)),
          matrix{type, n_in, n_out, memory.data()} {
        ggml_quantize_chunk(type, exact.data(), stored.data(), 0, n_out, n_in, nullptr);
        read_numbers();
        for (int row = 0; row < n_out; ++row) {
            pack_row(matrix, row,
                     stored.data() + static_cast<std::size_t>(row) * ggml_row_size(type, n_in));
        }
    }

    void read_numbers() {
        if (matrix.type == GGML_TYPE_F32) {
            std::memcpy(numbers.data(), stored.data(), stored.size());
        } else {
            ggml_get_type_traits(matrix.type)
                ->to_float(stored.data(), numbers.data(),
                           static_cast<std::int64_t>(numbers.size()));
        }
    }

    std::vector<std::byte> stored;
    std::vector<float> numbers;  // [n_in, n_out]
    AlignedBytes memory;
    PackedMatrix matrix;
};

// Rows in the input form of a matrix, and the numbers that they represent.
struct Inputs {
    Inputs(const MatmulKernel& kernel, const PackedMatrix& matrix, int n_rows, unsigned seed)
        : Inputs(
              kernel,
              matrix,
              random_numbers(
                  static_cast<std::size_t>(matrix.n_in) * static_cast<std::size_t>(n_rows), seed)) {
    }

    Inputs(const MatmulKernel& kernel, const PackedMatrix& matrix, std::vector<float> exact)
        : numbers(std::move(exact)),
          row_bytes(input_row_bytes(input_form(matrix.type), matrix.n_in)),
          bytes(row_bytes * (numbers.size() / static_cast<std::size_t>(matrix.n_in))) {
        if (input_form(matrix.type) == InputForm::floats) {
            std::memcpy(bytes.data(), numbers.data(), bytes.size());
            return;
        }
        auto* blocks = reinterpret_cast<QuantisedBlock*>(bytes.data());
        const std::size_t n_blocks = numbers.size() / kQuantBlock;
        kernel.quantise(numbers.data(), {blocks, n_blocks});
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const QuantisedBlock& block = blocks[i / kQuantBlock];
            numbers[i] = block.scale * static_cast<float>(block.values[i % kQuantBlock]);
        }
    }

    std::vector<float> numbers;  // [n_in, n_rows]
    std::size_t row_bytes;
    std::vector<std::byte> bytes;
};

// Multiplies rows [first, first + count), `n_groups` groups per call.
std::vector<float> multiply(const MatmulKernel& kernel,
                            const PackedMatrix& matrix,
                            const Inputs& inputs,
                            int first,
                            int count,
                            int n_groups,
                            const std::vector<float>& added = {}) {
    std::vector<float> out(static_cast<std::size_t>(matrix.n_out) * static_cast<std::size_t>(count),
                           std::numeric_limits<float>::quiet_NaN());
    for (int group = 0; group < matrix.n_groups(); group += n_groups) {
        kernel.multiply({
            .matrix = &matrix,
            .first_group = group,
            .n_groups = std::min(n_groups, matrix.n_groups() - group),
            .inputs = inputs.bytes.data() + inputs.row_bytes * static_cast<std::size_t>(first),
            .n_rows = count,
            .out = out.data(),
            .added = added.empty() ? nullptr : added.data(),
            .stride = matrix.n_out,
        });
    }
    return out;
}

bool has_same_bits(std::span<const float> a, std::span<const float> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

struct Case {
    MatmulKernel kernel;
    ggml_type type;
};

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const MatmulKernel& kernel : matmul_kernels()) {
        for (const ggml_type type : kTypes) {
            cases.push_back({kernel, type});
        }
    }
    return cases;
}

// Widths and heights, including some that fill neither vectors nor groups.
struct Shape {
    int n_in;
    int n_out;
};
std::vector<Shape> shapes(ggml_type type) {
    if (ggml_blck_size(type) == 256) {
        return {{256, 32}, {768, 33}, {512, 100}};
    }
    std::vector<Shape> shapes = {{32, 32}, {96, 1}, {576, 80}, {544, 47}};
    if (input_form(type) == InputForm::floats) {
        shapes.push_back({37, 50});
    }
    return shapes;
}

class Matmul : public ::testing::TestWithParam<Case> {};

TEST_P(Matmul, AgreesWithTheDefinition) {
    const auto& [kernel, type] = GetParam();
    for (const auto& [n_in, n_out] : shapes(type)) {
        const Weights weights(type, n_in, n_out);
        for (const int n_rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 23}) {
            const Inputs inputs(kernel, weights.matrix, n_rows, 11);
            const std::vector<float> found =
                multiply(kernel, weights.matrix, inputs, 0, n_rows, 1 << 20);
            for (int row = 0; row < n_rows; ++row) {
                for (int o = 0; o < n_out; ++o) {
                    double expected = 0;
                    double size = 0;
                    for (int i = 0; i < n_in; ++i) {
                        const double term =
                            double{weights.numbers[static_cast<std::size_t>(o * n_in + i)]} *
                            inputs.numbers[static_cast<std::size_t>(row * n_in + i)];
                        expected += term;
                        size += std::fabs(term);
                    }
                    ASSERT_NEAR(found[static_cast<std::size_t>(row * n_out + o)], expected,
                                2e-6 * size)
                        << n_in << " x " << n_out << ", row " << row << " of " << n_rows
                        << ", output " << o;
                }
            }
        }
    }
}

TEST_P(Matmul, IsBatchInvariant) {
    const auto& [kernel, type] = GetParam();
    const auto [n_in, n_out] = shapes(type).back();
    const Weights weights(type, n_in, n_out);
    constexpr int kRows = 101;  // more than the kernels take at a time
    const Inputs inputs(kernel, weights.matrix, kRows, 3);
    const std::vector<float> together = multiply(kernel, weights.matrix, inputs, 0, kRows, 1 << 20);
    for (int row = 0; row < kRows; ++row) {
        const std::vector<float> alone = multiply(kernel, weights.matrix, inputs, row, 1, 1 << 20);
        const auto at = static_cast<std::size_t>(row * n_out);
        ASSERT_TRUE(has_same_bits(alone, std::span(together).subspan(at, alone.size())))
            << "row " << row;
    }
}

TEST_P(Matmul, DoesNotDependOnHowGroupsAreShared) {
    const auto& [kernel, type] = GetParam();
    const Weights weights(type, 256, 200);
    const Inputs inputs(kernel, weights.matrix, 7, 5);
    const std::vector<float> whole = multiply(kernel, weights.matrix, inputs, 0, 7, 1 << 20);
    for (const int n_groups : {1, 2, 3}) {
        EXPECT_TRUE(has_same_bits(whole, multiply(kernel, weights.matrix, inputs, 0, 7, n_groups)));
    }
}

TEST_P(Matmul, IsBitIdenticalToTheReference) {
    const auto& [kernel, type] = GetParam();
    const MatmulKernel& reference = matmul_kernels().back();
    for (const auto& [n_in, n_out] : shapes(type)) {
        const Weights weights(type, n_in, n_out);
        constexpr int kRows = 70;
        const Inputs inputs(kernel, weights.matrix, kRows, 2);
        const Inputs expected_inputs(reference, weights.matrix, kRows, 2);
        ASSERT_EQ(inputs.bytes, expected_inputs.bytes);
        for (const int n_rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 31, kRows}) {
            EXPECT_TRUE(has_same_bits(
                multiply(kernel, weights.matrix, inputs, 0, n_rows, 1 << 20),
                multiply(reference, weights.matrix, expected_inputs, 0, n_rows, 1 << 20)))
                << n_in << " x " << n_out << ", " << n_rows << " rows";
        }
    }
}

// Sums of products must fit in the integers that a kernel adds them in.
TEST_P(Matmul, LargeCodesAndInputsAreBitIdenticalToTheReference) {
    const auto& [kernel, type] = GetParam();
    const MatmulKernel& reference = matmul_kernels().back();
    constexpr int kInputs = 512;
    constexpr int kOutputs = 32;
    constexpr int kRows = 8;
    // Nearly all weights of a block have its largest code.
    std::vector<float> numbers(std::size_t{kInputs} * kOutputs);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = i % 16 == 3 ? -1.0f : 0.96f;
    }
    const Weights weights(type, kInputs, kOutputs, numbers);
    std::vector<float> rows(std::size_t{kInputs} * kRows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        rows[i] = i / kInputs % 2 == 0 ? 1.0f : -1.0f;
    }
    const Inputs inputs(kernel, weights.matrix, rows);
    for (const int n_rows : {1, kRows}) {
        EXPECT_TRUE(has_same_bits(multiply(kernel, weights.matrix, inputs, 0, n_rows, 1 << 20),
                                  multiply(reference, weights.matrix, inputs, 0, n_rows, 1 << 20)))
            << n_rows << " rows";
    }
}

TEST_P(Matmul, AddsTheGivenNumbers) {
    const auto& [kernel, type] = GetParam();
    const Weights weights(type, 256, 50);
    const Inputs inputs(kernel, weights.matrix, 8, 5);
    std::vector<float> sum = multiply(kernel, weights.matrix, inputs, 0, 8, 1 << 20);
    const std::vector<float> added = random_numbers(sum.size(), 4);
    std::ranges::transform(added, sum, sum.begin(), std::plus<>());
    EXPECT_TRUE(has_same_bits(multiply(kernel, weights.matrix, inputs, 0, 8, 1 << 20, added), sum));
}

// Row i has the exponent i: from numbers below the smallest normal one to the largest whose
// products with 8-bit inputs are finite.
TEST(Mxfp4, TakesEveryExponent) {
    constexpr int kExponents = 240;
    Weights weights(GGML_TYPE_MXFP4, 32, kExponents);
    const std::size_t row_bytes = ggml_row_size(GGML_TYPE_MXFP4, 32);
    for (int i = 0; i < kExponents; ++i) {
        std::byte* row = weights.stored.data() + static_cast<std::size_t>(i) * row_bytes;
        row[0] = std::byte(i);
        pack_row(weights.matrix, i, row);
    }
    weights.read_numbers();
    for (const MatmulKernel& kernel : matmul_kernels()) {
        const Inputs inputs(kernel, weights.matrix, 1, 5);
        const std::vector<float> found = multiply(kernel, weights.matrix, inputs, 0, 1, 1 << 20);
        for (std::size_t o = 0; o < found.size(); ++o) {
            double expected = 0;
            double size = 0;
            for (std::size_t i = 0; i < 32; ++i) {
                const double term = double{weights.numbers[o * 32 + i]} * inputs.numbers[i];
                expected += term;
                size += std::fabs(term);
            }
            ASSERT_GT(size, 0);
            ASSERT_NEAR(found[o], expected, 2e-6 * size + 2e-45)
                << to_string(kernel.isa) << ", exponent " << o;
        }
    }
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
    return std::string(to_string(info.param.kernel.isa)) + "_" + ggml_type_name(info.param.type);
}
INSTANTIATE_TEST_SUITE_P(, Matmul, ::testing::ValuesIn(all_cases()), case_name);

class RowQuantiser : public ::testing::TestWithParam<MatmulKernel> {};

std::vector<QuantisedBlock> quantised(const MatmulKernel& kernel, const std::vector<float>& x) {
    std::vector<QuantisedBlock> blocks(x.size() / kQuantBlock);
    kernel.quantise(x.data(), blocks);
    return blocks;
}

bool has_same_bits(const std::vector<QuantisedBlock>& a, const std::vector<QuantisedBlock>& b) {
    return a.size() == b.size() &&
           std::memcmp(a.data(), b.data(), a.size() * sizeof(QuantisedBlock)) == 0;
}

TEST_P(RowQuantiser, RoundsToTheNearestOf255Steps) {
    const std::vector<float> x = random_numbers(96, 1);
    const std::vector<QuantisedBlock> blocks = quantised(GetParam(), x);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        int sums[2] = {0, 0};
        for (std::size_t i = 0; i < kQuantBlock; ++i) {
            const float value = static_cast<float>(blocks[b].values[i]) * blocks[b].scale;
            EXPECT_NEAR(value, x[b * kQuantBlock + i], blocks[b].scale * 0.501f);
            sums[i / 16] += blocks[b].values[i];
        }
        EXPECT_EQ(blocks[b].less[0], -sums[0]);
        EXPECT_EQ(blocks[b].less[1], -sums[1]);
        EXPECT_FLOAT_EQ(blocks[b].scaled_sum,
                        blocks[b].scale * static_cast<float>(sums[0] + sums[1]));
    }
}

TEST_P(RowQuantiser, KeepsZeros) {
    const QuantisedBlock block = quantised(GetParam(), std::vector<float>(32)).front();
    EXPECT_TRUE(std::ranges::all_of(block.values, [](int value) { return value == 0; }));
    EXPECT_EQ(block.scale, 0.0f);
}

TEST_P(RowQuantiser, InfinityGivesItsBlockANonFiniteScale) {
    for (const std::size_t n_blocks : {1, 4}) {
        std::vector<float> x = random_numbers(n_blocks * kQuantBlock, 1);
        x[5] = std::numeric_limits<float>::infinity();
        const std::vector<QuantisedBlock> blocks = quantised(GetParam(), x);
        for (std::size_t b = 0; b < n_blocks; ++b) {
            EXPECT_EQ(std::isfinite(blocks[b].scale), b > 0) << "block " << b << " of " << n_blocks;
        }
    }
}

// Also those whose numbers are all zero, or so small that their scale has no inverse.
TEST_P(RowQuantiser, RoundsSingleBlocksLikeTheWholeRow) {
    constexpr std::size_t kBlocks = 23;
    std::vector<float> x = random_numbers(kBlocks * kQuantBlock, 1);
    for (const std::size_t block : {1, 6}) {
        std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(block * kQuantBlock), kQuantBlock,
                    0.0f);
    }
    x[6 * kQuantBlock + 20] = 1e-38f;
    std::vector<QuantisedBlock> expected;
    for (std::size_t b = 0; b < kBlocks; ++b) {
        const auto first = x.begin() + static_cast<std::ptrdiff_t>(b * kQuantBlock);
        const std::vector<float> own(first, first + kQuantBlock);
        expected.push_back(quantised(GetParam(), own).front());
        EXPECT_TRUE(has_same_bits({expected.back()}, quantised(matmul_kernels().back(), own)))
            << "block " << b;
    }
    EXPECT_EQ(expected[6].less[1], 0);
    for (std::size_t n = 1; n <= kBlocks; ++n) {
        const std::vector<float> row(x.begin(),
                                     x.begin() + static_cast<std::ptrdiff_t>(n * kQuantBlock));
        const std::vector<QuantisedBlock> first(expected.begin(),
                                                expected.begin() + static_cast<std::ptrdiff_t>(n));
        EXPECT_TRUE(has_same_bits(quantised(GetParam(), row), first)) << n << " blocks";
    }
}

TEST_P(RowQuantiser, NormalisesSingleBlocksLikeTheWholeRow) {
    constexpr int kSize = 23 * 32;
    constexpr float kEps = 1e-5f;
    const std::vector<float> x = random_numbers(kSize, 1);
    const std::vector<float> weight = random_numbers(kSize, 2);
    double squares = 0;
    for (const float value : x) {
        squares += double{value} * value;
    }
    const double scale = 1.0 / std::sqrt(squares / kSize + kEps);
    std::vector<QuantisedBlock> whole(kSize / kQuantBlock);
    GetParam().norm_and_quantise(x.data(), weight.data(), kSize, kEps, 0, whole);
    std::vector<QuantisedBlock> parts(whole.size());
    for (std::size_t b = 0; b < parts.size(); ++b) {
        GetParam().norm_and_quantise(x.data(), weight.data(), kSize, kEps, static_cast<int>(b),
                                     std::span(parts).subspan(b, 1));
    }
    EXPECT_TRUE(has_same_bits(whole, parts));
    for (std::size_t i = 0; i < kSize; ++i) {
        const QuantisedBlock& block = whole[i / kQuantBlock];
        EXPECT_NEAR(static_cast<float>(block.values[i % kQuantBlock]) * block.scale,
                    x[i] * scale * weight[i], block.scale * 0.51);
    }
    std::vector<QuantisedBlock> reference(whole.size());
    matmul_kernels().back().norm_and_quantise(x.data(), weight.data(), kSize, kEps, 0, reference);
    EXPECT_TRUE(has_same_bits(whole, reference));
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}
double gelu(double x) {
    const double z = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return x * (1.0 + std::tanh(z)) / 2.0;
}

// Gate and up, as each activation joins them.
double gated(Activation activation, double gate, double up) {
    switch (activation) {
        case Activation::silu:
            return silu(gate) * up;
        case Activation::gelu:
            return gelu(gate) * up;
        case Activation::clamped_swiglu: {
            const double clamped = std::min(gate, 7.0);
            return clamped / (1 + std::exp(-1.702 * clamped)) * (std::clamp(up, -7.0, 7.0) + 1);
        }
    }
    return 0;
}

TEST_P(RowQuantiser, GatesWithEveryActivation) {
    std::vector<float> gate = random_numbers(23 * kQuantBlock, 1);
    std::vector<float> up = random_numbers(gate.size(), 2);
    up[7] = 12.0f;  // beyond the limits of one of them
    up[41] = -12.0f;
    std::ranges::transform(gate, gate.begin(), [](float x) { return 20 * x; });
    gate[3] = 200.0f;  // e^200 overflows an f32
    gate[40] = -200.0f;
    std::vector<QuantisedBlock> blocks(gate.size() / kQuantBlock);
    for (const Activation activation :
         {Activation::silu, Activation::gelu, Activation::clamped_swiglu}) {
        GetParam().gate_and_quantise(activation, gate.data(), up.data(), blocks);
        for (std::size_t i = 0; i < gate.size(); ++i) {
            const QuantisedBlock& block = blocks[i / kQuantBlock];
            EXPECT_NEAR(static_cast<float>(block.values[i % kQuantBlock]) * block.scale,
                        gated(activation, gate[i], up[i]), block.scale * 0.51)
                << gate[i];
        }
        std::vector<QuantisedBlock> reference(blocks.size());
        matmul_kernels().back().gate_and_quantise(activation, gate.data(), up.data(), reference);
        EXPECT_TRUE(has_same_bits(blocks, reference));
        std::vector<float> out(gate.size() - 5);  // not whole blocks
        GetParam().gate(activation, gate.data(), up.data(), static_cast<int>(out.size()),
                        out.data());
        for (std::size_t i = 0; i < out.size(); ++i) {
            const double expected = gated(activation, gate[i], up[i]);
            EXPECT_NEAR(out[i], expected, 1e-6 + 2e-6 * std::abs(expected)) << gate[i];
        }
    }
}

INSTANTIATE_TEST_SUITE_P(,
                         RowQuantiser,
                         ::testing::ValuesIn(matmul_kernels().begin(), matmul_kernels().end()),
                         [](const auto& test) { return std::string(to_string(test.param.isa)); });

TEST(PackedMatrix, TakesTheSpaceOfTheFile) {
    for (const ggml_type type : kTypes) {
        EXPECT_EQ(packed_bytes(type, 512, 64), ggml_row_size(type, 512) * 64);
        EXPECT_EQ(packed_bytes(type, 512, 65), ggml_row_size(type, 512) * 96);
    }
}

TEST(PackedMatrix, LeavesTheNextOneAligned) {
    for (const ggml_type type : kTypes) {
        for (const auto& [n_in, n_out] : shapes(type)) {
            EXPECT_EQ(packed_bytes(type, n_in, n_out) % kPackedAlignment, 0u);
        }
    }
}

TEST(PackedMatrix, RefusesTypesAndWidthsWithoutALayout) {
    EXPECT_FALSE(can_pack(GGML_TYPE_TQ1_0, 256));
    EXPECT_FALSE(can_pack(GGML_TYPE_Q2_K, 128));
    EXPECT_FALSE(can_pack(GGML_TYPE_I32, 256));
    EXPECT_FALSE(can_pack(GGML_TYPE_Q4_K, 128));
    EXPECT_FALSE(can_pack(GGML_TYPE_Q4_0, 48));
    EXPECT_TRUE(can_pack(GGML_TYPE_F16, 37));
}

TEST(PackedMatrix, OverwritesOnlyTheGivenRow) {
    for (const ggml_type type : kTypes) {
        const Weights weights(type, 256, 40);
        const Inputs inputs(matmul_kernels().back(), weights.matrix, 1, 5);
        const auto product = [&] {
            return multiply(matmul_kernels().back(), weights.matrix, inputs, 0, 1, 1 << 20);
        };
        std::vector<float> expected = product();
        pack_row(weights.matrix, 33, weights.stored.data() + 4 * ggml_row_size(type, 256));
        expected[33] = expected[4];
        EXPECT_TRUE(has_same_bits(product(), expected)) << ggml_type_name(type);
    }
}

}  // namespace
}  // namespace knap::matmul_test
