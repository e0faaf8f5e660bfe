#include "kernels/attention.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ggml.h"

#include <gtest/gtest.h>

namespace knap {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Random queries, keys and values of one KV head, with a mask per column.
struct Problem {
    Problem(int head_dim_, int n_columns_, int n_positions_, unsigned seed)
        : head_dim(head_dim_), n_columns(n_columns_), n_positions(n_positions_) {
        std::mt19937 engine(seed);
        std::normal_distribution<float> normal;
        const auto fill = [&](int n) {
            std::vector<float> numbers(static_cast<std::size_t>(n));
            for (float& number : numbers) {
                number = normal(engine);
            }
            return numbers;
        };
        queries = fill(head_dim * n_columns);
        keys = rounded(fill(head_dim * n_positions));
        values = rounded(fill(head_dim * n_positions));
        for (int i = 0; i < n_columns * n_positions; ++i) {
            mask.push_back(engine() % 4 == 0 ? -kInfinity : 0.0f);
        }
    }

    static std::vector<float> rounded(std::vector<float> x) {
        for (float& value : x) {
            value = ggml_fp16_to_fp32(ggml_fp32_to_fp16(value));
        }
        return x;
    }

    // The attention of a column in double precision, straight from the definition.
    std::vector<double> expected(int column) const {
        std::vector<double> out(static_cast<std::size_t>(head_dim));
        double total = 0;
        for (int p = 0; p < n_positions; ++p) {
            if (mask[at(column, n_positions, p)] == -kInfinity) {
                continue;
            }
            double score = 0;
            for (int d = 0; d < head_dim; ++d) {
                score += static_cast<double>(queries[at(column, head_dim, d)]) *
                         keys[at(p, head_dim, d)];
            }
            const double weight = std::exp(score * scale);
            total += weight;
            for (int d = 0; d < head_dim; ++d) {
                out[static_cast<std::size_t>(d)] += weight * values[at(p, head_dim, d)];
            }
        }
        for (double& x : out) {
            x = total > 0 ? x / total : 0;
        }
        return out;
    }

    static std::size_t at(int row, int width, int column) {
        return static_cast<std::size_t>(row * width + column);
    }

    int head_dim;
    int n_columns;
    int n_positions;
    float scale = 0.125f;
    std::vector<float> queries;  // [head_dim, n_columns]
    std::vector<float> keys;     // [head_dim, n_positions]
    std::vector<float> values;   // [head_dim, n_positions]
    std::vector<float> mask;     // [n_positions, n_columns]
};

// Runs a kernel over columns [first, first + count) of a problem, chunk by chunk.
std::vector<float> solve(const AttentionKernel& kernel,
                         const Problem& problem,
                         int first,
                         int count) {
    const int head_dim = problem.head_dim;
    std::vector<std::uint16_t> keys(problem.keys.size());
    std::vector<std::uint16_t> values(problem.values.size());
    for (int p = 0; p < problem.n_positions; ++p) {
        for (int d = 0; d < head_dim; ++d) {
            const int tile = p / kKeyTile;
            keys[static_cast<std::size_t>((tile * head_dim + d) * kKeyTile + p % kKeyTile)] =
                ggml_fp32_to_fp16(problem.keys[Problem::at(p, head_dim, d)]);
            values[Problem::at(p, head_dim, d)] =
                ggml_fp32_to_fp16(problem.values[Problem::at(p, head_dim, d)]);
        }
    }
    std::vector<std::uint16_t> mask;
    for (const float value : problem.mask) {
        mask.push_back(ggml_fp32_to_fp16(value));
    }
    const std::size_t size = partial_size(head_dim);
    std::vector<float> states(size * static_cast<std::size_t>(count));
    std::vector<float> partials(states.size(), std::nanf(""));  // every number must be written
    for (int c = 0; c < count; ++c) {
        clear_partial(head_dim, states.data() + size * static_cast<std::size_t>(c));
    }
    const auto n_columns = static_cast<std::size_t>(count);
    std::vector<const float*> queries(n_columns);
    std::vector<const std::uint16_t*> masks(n_columns);
    std::vector<float*> places(n_columns);
    for (int position = 0; position < problem.n_positions; position += kAttentionChunk) {
        for (std::size_t c = 0; c < n_columns; ++c) {
            const int column = first + static_cast<int>(c);
            queries[c] = problem.queries.data() + Problem::at(column, head_dim, 0);
            masks[c] = mask.data() + Problem::at(column, problem.n_positions, position);
            places[c] = partials.data() + size * c;
        }
        kernel.run_chunk({.head_dim = head_dim,
                          .n_columns = count,
                          .n_positions = std::min(kAttentionChunk, problem.n_positions - position),
                          .scale = problem.scale,
                          .queries = queries.data(),
                          .keys = keys.data() + position * head_dim,
                          .values = values.data() + position * head_dim,
                          .masks = masks.data(),
                          .partials = places.data()});
        for (int c = 0; c < count; ++c) {
            kernel.merge(head_dim, states.data() + size * static_cast<std::size_t>(c),
                         places[static_cast<std::size_t>(c)]);
        }
    }
    std::vector<float> out(static_cast<std::size_t>(head_dim * count));
    for (int c = 0; c < count; ++c) {
        finish_partial(head_dim, states.data() + size * static_cast<std::size_t>(c),
                       out.data() + static_cast<std::size_t>(head_dim * c));
    }
    return out;
}

class AttentionKernels : public ::testing::TestWithParam<AttentionKernel> {};

TEST_P(AttentionKernels, AgreeWithTheDefinition) {
    for (const int head_dim : {16, 64, 80, 96, 128, 256}) {
        for (const int n_columns : {1, 2, 3, 5, 6, 7, 12, 48}) {
            for (const int n_positions : {64, 256, 320, 1024}) {
                const Problem problem(head_dim, n_columns, n_positions, 1);
                const auto out = solve(GetParam(), problem, 0, n_columns);
                for (int c = 0; c < n_columns; ++c) {
                    const auto expected = problem.expected(c);
                    for (int d = 0; d < head_dim; ++d) {
                        ASSERT_NEAR(out[Problem::at(c, head_dim, d)],
                                    expected[static_cast<std::size_t>(d)], 2e-5)
                            << head_dim << " channels, column " << c << " of " << n_columns << ", "
                            << n_positions;
                    }
                }
            }
        }
    }
}

TEST_P(AttentionKernels, AColumnDoesNotDependOnTheOthers) {
    for (const int head_dim : {16, 64, 80, 128}) {
        const Problem problem(head_dim, 48, 576, 2);
        const auto all = solve(GetParam(), problem, 0, 48);
        for (const int count : {1, 2, 3, 4, 5, 6, 11}) {
            for (int first = 0; first + count <= 48; first += 7) {
                const auto some = solve(GetParam(), problem, first, count);
                const auto* same = all.data() + Problem::at(first, head_dim, 0);
                ASSERT_TRUE(std::equal(some.begin(), some.end(), same))
                    << count << " columns from " << first;
            }
        }
    }
}

TEST_P(AttentionKernels, HiddenPositionsAtTheEndChangeNothing) {
    Problem longer(64, 5, 640, 3);
    Problem shorter = longer;
    shorter.n_positions = 320;
    shorter.mask.clear();
    for (int c = 0; c < 5; ++c) {
        for (int p = 0; p < 640; ++p) {
            if (p < 320) {
                shorter.mask.push_back(longer.mask[Problem::at(c, 640, p)]);
            } else {
                longer.mask[Problem::at(c, 640, p)] = -kInfinity;
            }
        }
    }
    shorter.keys.resize(64 * 320);
    shorter.values.resize(64 * 320);
    EXPECT_EQ(solve(GetParam(), longer, 0, 5), solve(GetParam(), shorter, 0, 5));
}

TEST_P(AttentionKernels, AColumnThatSeesNothingIsZero) {
    Problem problem(64, 2, 64, 4);
    std::fill(problem.mask.begin(), problem.mask.begin() + 64, -kInfinity);
    const auto out = solve(GetParam(), problem, 0, 2);
    EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 64), std::vector<float>(64, 0.0f));
    EXPECT_NE(out[64], 0.0f);
}

TEST_P(AttentionKernels, LargeScoresDoNotOverflow) {
    Problem problem(64, 3, 320, 5);
    for (float& q : problem.queries) {
        q *= 200.0f;
    }
    for (const float x : solve(GetParam(), problem, 0, 3)) {
        EXPECT_TRUE(std::isfinite(x));
        EXPECT_LT(std::abs(x), 6.0f) << "a mean of values stays among them";
    }
}

INSTANTIATE_TEST_SUITE_P(Machine,
                         AttentionKernels,
                         ::testing::ValuesIn(attention_kernels().begin(),
                                             attention_kernels().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace knap
