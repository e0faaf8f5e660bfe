// Products with tile registers: with a model of the registers on any machine, and on machines with
// AMX with the registers themselves.
#include "kernels/matmul/tile_products.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/matmul/amx_tiles.h"
#include "kernels/simd_plain.h"
#include "support/environment_variable.h"

namespace knap::tile_products_test {
namespace {

// What amx_tiles.h does, number by number.
struct TileModel {
    TileModel() { ++n_open; }
    ~TileModel() { --n_open; }
    static void multiply(const std::int8_t* inputs, const std::byte* weights, std::int32_t* sums) {
        for (int i = 0; i < 16; ++i) {
            for (int o = 0; o < 16; ++o) {
                std::int32_t sum = 0;
                for (int k = 0; k < 32; ++k) {
                    sum += inputs[i * 32 + k] *
                           std::to_integer<int>(weights[k / 4 * 64 + o * 4 + k % 4]);
                }
                sums[i * 16 + o] = sum;
            }
        }
    }
    static inline int n_open = 0;
};

std::vector<float> random_numbers(std::size_t n, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(n);
    for (float& number : numbers) {
        number = normal(engine);
    }
    return numbers;
}

template <ggml_type Type>
struct Typed {
    static constexpr ggml_type kType = Type;
};

template <typename T>
class TileProductsOf : public ::testing::Test {
  protected:
    static constexpr ggml_type kType = T::kType;

    // A random matrix, and rows for it.
    void make(int n_in, int n_out, int n_rows) {
        const auto count = static_cast<std::size_t>(n_in) * static_cast<std::size_t>(n_out);
        std::vector<std::byte> stored(ggml_row_size(kType, n_in) * static_cast<std::size_t>(n_out));
        ggml_quantize_chunk(kType, random_numbers(count, 7).data(), stored.data(), 0, n_out, n_in,
                            nullptr);
        memory_.assign(packed_bytes(kType, n_in, n_out) + kPackedAlignment, std::byte{0});
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        std::byte* aligned =
            memory_.data() + (kPackedAlignment - address % kPackedAlignment) % kPackedAlignment;
        matrix_ = {.type = kType, .n_in = n_in, .n_out = n_out, .data = aligned};
        for (int row = 0; row < n_out; ++row) {
            pack_row(matrix_, row,
                     stored.data() + static_cast<std::size_t>(row) * ggml_row_size(kType, n_in));
        }
        inputs_.resize(static_cast<std::size_t>(n_in / kQuantBlock * n_rows));
        plain().quantise(
            random_numbers(static_cast<std::size_t>(n_in) * static_cast<std::size_t>(n_rows), 3)
                .data(),
            inputs_);
        n_rows_ = n_rows;
    }

    static const MatmulKernel& plain() { return matmul_kernels().back(); }

    // All groups but the first are multiplied.
    template <typename Multiply>
    std::vector<std::uint32_t> bits_of(Multiply multiply, bool adds) {
        const auto n = static_cast<std::size_t>(matrix_.n_out) * static_cast<std::size_t>(n_rows_);
        std::vector<float> out(n, 5.0f);
        const std::vector<float> added = random_numbers(n, 9);
        multiply(Product{.matrix = &matrix_,
                         .first_group = 1,
                         .n_groups = matrix_.n_groups() - 1,
                         .inputs = reinterpret_cast<const std::byte*>(inputs_.data()),
                         .n_rows = n_rows_,
                         .out = out.data(),
                         .added = adds ? added.data() : nullptr,
                         .stride = matrix_.n_out});
        std::vector<std::uint32_t> bits(n);
        std::memcpy(bits.data(), out.data(), n * sizeof(float));
        return bits;
    }

    std::vector<std::byte> memory_;
    PackedMatrix matrix_;
    std::vector<QuantisedBlock> inputs_;
    int n_rows_ = 0;
};

using Types = ::testing::Types<Typed<GGML_TYPE_Q4_0>,
                               Typed<GGML_TYPE_Q4_1>,
                               Typed<GGML_TYPE_Q5_0>,
                               Typed<GGML_TYPE_Q5_1>,
                               Typed<GGML_TYPE_Q8_0>,
                               Typed<GGML_TYPE_IQ4_NL>,
                               Typed<GGML_TYPE_MXFP4>,
                               Typed<GGML_TYPE_Q4_K>,
                               Typed<GGML_TYPE_Q5_K>,
                               Typed<GGML_TYPE_IQ4_XS>>;
TYPED_TEST_SUITE(TileProductsOf, Types);

TYPED_TEST(TileProductsOf, HaveTheBitsOfTheReference) {
    using Products = TileProducts<PlainSimd, TileModel, TypeParam::kType>;
    // More blocks than a panel, more rows than are packed at a time, and parts of both.
    for (const auto& [n_in, n_out, n_rows] :
         {std::array{256, 64, 16}, {1280, 97, 70}, {5120, 45, 35}, {256, 50, 1}}) {
        this->make(n_in, n_out, n_rows);
        for (const bool adds : {false, true}) {
            const auto expected = this->bits_of(this->plain().multiply, adds);
            ASSERT_TRUE(this->bits_of(Products::run, adds) == expected)
                << n_in << " x " << n_out << ", " << n_rows << " rows";
        }
    }
    EXPECT_EQ(TileModel::n_open, 0) << "the registers are given back";
}

TYPED_TEST(TileProductsOf, RowsThatAreTooWideAreRefused) {
    using Products = TileProducts<PlainSimd, TileModel, TypeParam::kType>;
    PackedMatrix matrix{.type = TypeParam::kType, .n_in = 16384};
    EXPECT_TRUE(Products::takes({.matrix = &matrix}));
    matrix.n_in = 16640;
    EXPECT_FALSE(Products::takes({.matrix = &matrix}));
}

// The kernels themselves are in the case list of matmul_test.cpp.
TEST(Amx, IsAmongTheKernelsOfMachinesThatHaveIt) {
    const test::EnvironmentVariable named("KNAP_ISA", "amx");
    if (!may_use(Isa::amx)) {
        GTEST_SKIP() << "needs a CPU with AMX";
    }
    if (matmul_kernels().front().isa != Isa::amx) {
        GTEST_SKIP() << "run these tests with KNAP_ISA=amx to test AMX's kernels";
    }
}

#if defined(__x86_64__)
TEST(Amx, RegistersKeepTheShapesThatOthersGaveThem) {
    if (!may_use(Isa::amx)) {
        GTEST_SKIP() << "needs a CPU with AMX";
    }
    struct alignas(64) Shapes {
        std::uint8_t bytes[64] = {};
    };
    Shapes before;
    before.bytes[0] = 1;   // palette
    before.bytes[16] = 8;  // bytes of a row of register 0
    before.bytes[48] = 5;  // its rows
    __asm__ volatile("ldtilecfg %0" ::"m"(before));
    Shapes within;
    {
        const AmxTiles tiles;
        __asm__ volatile("sttilecfg %0" : "=m"(within));
    }
    Shapes after;
    __asm__ volatile("sttilecfg %0" : "=m"(after));
    __asm__ volatile("tilerelease");
    EXPECT_NE(std::memcmp(within.bytes, before.bytes, 64), 0);
    EXPECT_EQ(std::memcmp(after.bytes, before.bytes, 64), 0);
}
#endif

}  // namespace
}  // namespace knap::tile_products_test
