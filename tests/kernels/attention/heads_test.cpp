#include "kernels/attention/heads.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ggml.h"

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"

namespace knap::heads_test {
namespace {

std::vector<float> random_numbers(int n, unsigned seed) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    std::vector<float> numbers(static_cast<std::size_t>(n));
    for (float& number : numbers) {
        number = normal(engine);
    }
    return numbers;
}

class HeadsKernels : public ::testing::TestWithParam<HeadsKernel> {
  protected:
    // Checks every channel of a rotated head against the definition. Pairs are `partner` channels
    // apart.
    static void expect_rotated(int n_rot,
                               int partner,
                               const std::vector<float>& turns,
                               const std::vector<float>& x,
                               const std::vector<float>& out) {
        for (std::size_t i = 0; i < x.size(); ++i) {
            const int channel = static_cast<int>(i);
            const int stride = partner == 1 ? 2 : n_rot;
            if (channel >= n_rot) {
                EXPECT_EQ(out[i], x[i]) << "channel " << i << " is not rotated";
                continue;
            }
            const bool is_first = channel % stride < partner;
            const std::size_t a = is_first ? i : i - static_cast<std::size_t>(partner);
            const std::size_t b = a + static_cast<std::size_t>(partner);
            const double expected = is_first ? double{x[a]} * turns[a] - double{x[b]} * turns[b]
                                             : double{x[a]} * turns[b] + double{x[b]} * turns[a];
            EXPECT_NEAR(out[i], expected, 1e-6) << "channel " << i << " of " << n_rot;
        }
    }
};

struct Shape {
    int head_dim;
    int n_rot;
};
constexpr Shape kShapes[] = {{16, 16}, {64, 64}, {80, 80}, {96, 24}, {128, 128}, {128, 6}, {64, 2}};

TEST_P(HeadsKernels, RotateNeighbours) {
    for (const auto [head_dim, n_rot] : kShapes) {
        const auto x = random_numbers(head_dim, 1);
        const auto turns = random_numbers(n_rot, 2);
        std::vector<float> out(x.size(), std::nanf(""));
        GetParam().rotate_neighbours(head_dim, n_rot, turns.data(), x.data(), out.data());
        expect_rotated(n_rot, 1, turns, x, out);
    }
}

TEST_P(HeadsKernels, RotateHalves) {
    for (const auto [head_dim, n_rot] : kShapes) {
        const auto x = random_numbers(head_dim, 1);
        const auto turns = random_numbers(n_rot, 2);
        std::vector<float> out(x.size(), std::nanf(""));
        GetParam().rotate_halves(head_dim, n_rot, turns.data(), x.data(), out.data());
        expect_rotated(n_rot, n_rot / 2, turns, x, out);
    }
}

TEST_P(HeadsKernels, RotationsHaveTheBitsOfTheReference) {
    const HeadsKernel& plain = heads_kernels().back();
    for (const auto [head_dim, n_rot] : kShapes) {
        for (const auto rotate : {&HeadsKernel::rotate_neighbours, &HeadsKernel::rotate_halves}) {
            const auto x = random_numbers(head_dim, 1);
            const auto turns = random_numbers(n_rot, 2);
            std::vector<float> out(x.size());
            std::vector<float> expected(x.size());
            (GetParam().*rotate)(head_dim, n_rot, turns.data(), x.data(), out.data());
            (plain.*rotate)(head_dim, n_rot, turns.data(), x.data(), expected.data());
            EXPECT_EQ(out, expected) << n_rot << " of " << head_dim << " channels";
        }
    }
}

// Ordinary numbers, and some that are hard to round to half precision.
std::vector<float> numbers_to_round(int head_dim) {
    auto x = random_numbers(head_dim, 3);
    x[0] = 1.0f + 0x1p-11f;      // a tie: down to even
    x[1] = 1.0f + 3 * 0x1p-11f;  // a tie: up to even
    x[2] = 0x1p-25f;             // half of the smallest number: a tie, down to zero
    x[3] = -0x1.8p-24f;          // a tie among subnormal numbers
    x[4] = 65520.0f;             // overflows
    x[5] = -0.0f;
    x[6] = std::numeric_limits<float>::infinity();
    return x;
}

TEST_P(HeadsKernels, ValuesAreRoundedAsInGgml) {
    const auto x = numbers_to_round(80);
    std::vector<std::uint16_t> out(80);
    GetParam().store_value(80, x.data(), out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_EQ(out[i], ggml_fp32_to_fp16(x[i])) << "of " << x[i];
    }
}

TEST_P(HeadsKernels, AKeyFillsItsLaneOfTheTile) {
    const auto x = numbers_to_round(48);
    for (const int lane : {0, 5, 15}) {
        std::vector<std::uint16_t> tile(48 * kKeyTile, 7);
        GetParam().store_key(48, x.data(), lane, tile.data());
        for (int d = 0; d < 48; ++d) {
            for (int i = 0; i < kKeyTile; ++i) {
                EXPECT_EQ(tile[static_cast<std::size_t>(d * kKeyTile + i)],
                          i == lane ? ggml_fp32_to_fp16(x[static_cast<std::size_t>(d)]) : 7);
            }
        }
    }
}

// Checks that each number is within half a step of its int8 code.
void expect_int8(const std::vector<float>& x, std::uint16_t scale_bits, const auto& whole) {
    const float scale = ggml_fp16_to_fp32(scale_bits);
    for (std::size_t d = 0; d < x.size(); ++d) {
        EXPECT_GE(whole(d), -127);
        EXPECT_LE(whole(d), 127);
        EXPECT_NEAR(static_cast<float>(whole(d)) * scale, x[d], 0.501f * scale) << d;
    }
}

TEST_P(HeadsKernels, AnInt8KeyFillsItsLaneOfTheTile) {
    const auto x = random_numbers(48, 4);
    for (const int lane : {0, 5, 15}) {
        std::vector<std::uint8_t> tile(48 * kKeyTile, 7);
        const std::uint16_t scale = GetParam().store_int8_key(48, x.data(), lane, tile.data());
        const auto place = [&](std::size_t d, int position) {
            return d / 4 * 4 * kKeyTile + static_cast<std::size_t>(position) * 4 + d % 4;
        };
        expect_int8(x, scale, [&](std::size_t d) { return tile[place(d, lane)] - kKeyOffset; });
        for (std::size_t d = 0; d < 48; ++d) {
            EXPECT_EQ(tile[place(d, (lane + 1) % kKeyTile)], 7);
        }
    }
}

TEST_P(HeadsKernels, AnInt8ValueFillsItsLaneOfTheTile) {
    const auto x = random_numbers(48, 5);
    for (const int lane : {0, 1, 3}) {
        std::vector<std::int8_t> tile(48 * kValueTile, 7);
        const std::uint16_t scale = GetParam().store_int8_value(48, x.data(), lane, tile.data());
        const auto place = [&](std::size_t d, int position) {
            return d * kValueTile + static_cast<std::size_t>(position);
        };
        expect_int8(x, scale, [&](std::size_t d) { return tile[place(d, lane)]; });
        for (std::size_t d = 0; d < 48; ++d) {
            EXPECT_EQ(tile[place(d, (lane + 1) % kValueTile)], 7);
        }
    }
}

TEST_P(HeadsKernels, Int8NumbersMatchTheReference) {
    const HeadsKernel& plain = heads_kernels().back();
    for (unsigned seed = 1; seed <= 50; ++seed) {
        const auto x = random_numbers(80, seed);
        std::vector<std::int8_t> tile(80 * kValueTile);
        std::vector<std::int8_t> expected(tile);
        EXPECT_EQ(GetParam().store_int8_value(80, x.data(), 2, tile.data()),
                  plain.store_int8_value(80, x.data(), 2, expected.data()));
        EXPECT_EQ(tile, expected);
    }
}

// Zeros, and numbers out of range for a half-precision scale.
TEST_P(HeadsKernels, Int8ScalesStayFinite) {
    for (const float size : {0.0f, 1e-30f, 1e-7f, 3e-6f, 1e9f}) {
        std::vector<float> x(32, size);
        x[3] = -size;
        std::vector<std::int8_t> tile(32 * kValueTile);
        const float scale =
            ggml_fp16_to_fp32(GetParam().store_int8_value(32, x.data(), 0, tile.data()));
        EXPECT_TRUE(std::isfinite(scale)) << size;
        EXPECT_GE(tile[3 * kValueTile], -127) << size;
        EXPECT_LE(static_cast<float>(tile[0]) * scale, size * 1.01f);
    }
}

INSTANTIATE_TEST_SUITE_P(Machine,
                         HeadsKernels,
                         ::testing::ValuesIn(heads_kernels().begin(), heads_kernels().end()),
                         [](const auto& test) { return std::string(to_string(test.param.isa)); });

}  // namespace
}  // namespace knap::heads_test
