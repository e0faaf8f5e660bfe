#include "kernels/matmul/packed_rows.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace knap::packed_rows_test {
namespace {

// Tiles of every height and width, some of them wider than the rest of a row.
TEST(PackedRows, AreGatedLikeEachRowAlone) {
    constexpr int kWidth = 10 * kQuantBlock;
    const PackedMatrix down{.type = GGML_TYPE_Q4_0, .n_in = kWidth, .n_out = 32};
    const std::size_t n_bytes = row_bytes(down);
    std::mt19937 engine(3);
    std::normal_distribution<float> normal;
    for (const int n_rows : {1, 2, 9, 70}) {
        for (const int n_groups : {1, 3, 8}) {
            const int width = n_groups * kGroupRows;
            std::vector<float> gates(static_cast<std::size_t>(n_rows * width));
            std::vector<float> ups(gates.size());
            for (std::size_t i = 0; i < gates.size(); ++i) {
                gates[i] = normal(engine);
                ups[i] = normal(engine);
            }
            for (const int first_group : {0, 5}) {
                const int n_blocks = std::min(n_groups, 10 - first_group);
                std::vector<std::byte> found(n_bytes * static_cast<std::size_t>(n_rows));
                std::vector<std::byte> expected(found.size());
                gate_rows({.gates = gates.data(),
                           .ups = ups.data(),
                           .width = width,
                           .n_rows = n_rows,
                           .down = down,
                           .first_group = first_group,
                           .out = found.data()});
                for (int row = 0; row < n_rows; ++row) {
                    auto* blocks = reinterpret_cast<QuantisedBlock*>(
                        expected.data() + n_bytes * static_cast<std::size_t>(row));
                    matmul_kernel().gate_and_quantise(
                        Activation::silu, gates.data() + std::ptrdiff_t{row} * width,
                        ups.data() + std::ptrdiff_t{row} * width,
                        {blocks + first_group, static_cast<std::size_t>(n_blocks)});
                }
                EXPECT_EQ(found, expected)
                    << n_rows << " rows of " << n_groups << " groups from " << first_group;
            }
        }
    }
}

}  // namespace
}  // namespace knap::packed_rows_test
