#include "kernels/attention/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "ggml.h"

#include <gtest/gtest.h>

#include "kernels/attention/heads.h"

namespace knap::attention_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool is_hidden(std::uint16_t mask) {
    return mask != 0;
}

// Random queries, keys and values of one KV head, with a mask per column.
struct Problem {
    Problem(int head_dim_, int n_columns_, int n_positions_, unsigned seed)
        : head_dim(head_dim_), n_columns(n_columns_), n_positions(n_positions_) {
        std::mt19937 engine(seed);
        const auto fill = [&](int n) {
            std::vector<float> numbers(static_cast<std::size_t>(n));
            for (float& number : numbers) {
                number = nearly_normal(engine);
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

    // A sum of twelve uniform numbers: std::normal_distribution is not the same on every machine.
    static float nearly_normal(std::mt19937& engine) {
        double sum = -6.0;
        for (int i = 0; i < 12; ++i) {
            sum += static_cast<double>(engine()) * 0x1p-32;
        }
        return static_cast<float>(sum);
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
            score *= scale;
            const double weight =
                std::exp(soft_cap > 0 ? soft_cap * std::tanh(score / soft_cap) : score);
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
    float soft_cap = 0;
    std::vector<float> queries;  // [head_dim, n_columns]
    std::vector<float> keys;     // [head_dim, n_positions]
    std::vector<float> values;   // [head_dim, n_positions]
    std::vector<float> mask;     // [n_positions, n_columns]
    // Tells the kernel how many positions a mask shows if those are the first ones.
    bool tells_prefixes = false;
};

// The problem's keys and values in the format of an f16 cache.
struct HalfCache {
    static constexpr double kBound = 2e-5;  // absolute error of a mean of normal numbers
    static constexpr std::uint64_t kDigest = 3691300966427212634U;

    explicit HalfCache(const Problem& problem)
        : head_dim(problem.head_dim), keys(problem.keys.size()), values(problem.values.size()) {
        const HeadsKernel& heads = heads_kernels().front();
        for (int p = 0; p < problem.n_positions; ++p) {
            const int lane = p % kKeyTile;
            heads.store_key(head_dim, problem.keys.data() + Problem::at(p, head_dim, 0), lane,
                            keys.data() + Problem::at(p - lane, head_dim, 0));
            heads.store_value(head_dim, problem.values.data() + Problem::at(p, head_dim, 0),
                              values.data() + Problem::at(p, head_dim, 0));
        }
    }

    void run(const AttentionKernel& kernel, const AttentionChunk& chunk, int position) const {
        kernel.run_chunk(chunk, {.keys = keys.data() + Problem::at(position, head_dim, 0),
                                 .values = values.data() + Problem::at(position, head_dim, 0)});
    }

    int head_dim;
    std::vector<std::uint16_t> keys;
    std::vector<std::uint16_t> values;
};

// The same in the format of an int8 cache.
struct Int8Cache {
    static constexpr double kBound = 5e-2;
    static constexpr std::uint64_t kDigest = 14840766232984820039U;

    explicit Int8Cache(const Problem& problem)
        : head_dim(problem.head_dim),
          keys(problem.keys.size()),
          values(problem.values.size()),
          key_scales(static_cast<std::size_t>(problem.n_positions)),
          value_scales(static_cast<std::size_t>(problem.n_positions)) {
        const HeadsKernel& heads = heads_kernels().front();
        for (int p = 0; p < problem.n_positions; ++p) {
            const auto row = static_cast<std::size_t>(p);
            const int key_lane = p % kKeyTile;
            key_scales[row] = heads.store_int8_key(
                head_dim, problem.keys.data() + Problem::at(p, head_dim, 0), key_lane,
                keys.data() + Problem::at(p - key_lane, head_dim, 0));
            const int value_lane = p % kValueTile;
            value_scales[row] = heads.store_int8_value(
                head_dim, problem.values.data() + Problem::at(p, head_dim, 0), value_lane,
                values.data() + Problem::at(p - value_lane, head_dim, 0));
        }
    }

    void run(const AttentionKernel& kernel, const AttentionChunk& chunk, int position) const {
        kernel.run_int8_chunk(chunk, {.keys = keys.data() + Problem::at(position, head_dim, 0),
                                      .key_scales = key_scales.data() + position,
                                      .values = values.data() + Problem::at(position, head_dim, 0),
                                      .value_scales = value_scales.data() + position});
    }

    int head_dim;
    std::vector<std::uint8_t> keys;
    std::vector<std::int8_t> values;
    std::vector<std::uint16_t> key_scales;
    std::vector<std::uint16_t> value_scales;
};

// How many positions a mask shows, or kUnknownPrefix if those are not the first ones.
int prefix_of(const std::uint16_t* mask, int n_positions) {
    const auto n = static_cast<int>(std::find_if(mask, mask + n_positions, is_hidden) - mask);
    return std::all_of(mask + n, mask + n_positions, is_hidden) ? n : kUnknownPrefix;
}

// Runs a kernel over columns [first, first + count) of a problem, chunk by chunk.
template <typename Cache>
std::vector<float> solve(const AttentionKernel& kernel,
                         const Problem& problem,
                         int first,
                         int count) {
    const int head_dim = problem.head_dim;
    const Cache cache(problem);
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
    std::vector<int> n_visible(n_columns);
    for (int position = 0; position < problem.n_positions; position += kAttentionChunk) {
        const int n_positions = std::min(kAttentionChunk, problem.n_positions - position);
        for (std::size_t c = 0; c < n_columns; ++c) {
            const int column = first + static_cast<int>(c);
            queries[c] = problem.queries.data() + Problem::at(column, head_dim, 0);
            masks[c] = mask.data() + Problem::at(column, problem.n_positions, position);
            places[c] = partials.data() + size * c;
            n_visible[c] = prefix_of(masks[c], n_positions);
        }
        cache.run(kernel,
                  {.head_dim = head_dim,
                   .n_columns = count,
                   .n_positions = n_positions,
                   .scale = problem.scale,
                   .soft_cap = problem.soft_cap,
                   .queries = queries.data(),
                   .masks = masks.data(),
                   .partials = places.data(),
                   .n_visible = problem.tells_prefixes ? n_visible.data() : nullptr},
                  position);
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

// A kernel for one type of cache.
struct Solver {
    std::string name;
    AttentionKernel kernel;
    std::vector<float> (*solve)(const AttentionKernel&, const Problem&, int first, int count);
    double bound;
    std::uint64_t digest;  // of problems_of_every_kind()

    std::vector<float> operator()(const Problem& problem, int first, int count) const {
        return solve(kernel, problem, first, count);
    }
};

void PrintTo(const Solver& solver, std::ostream* out) {
    *out << solver.name;
}

std::vector<Solver> all_solvers() {
    std::vector<Solver> solvers;
    for (const AttentionKernel& kernel : attention_kernels()) {
        const std::string name(to_string(kernel.isa));
        solvers.push_back(
            {name + "_f16", kernel, solve<HalfCache>, HalfCache::kBound, HalfCache::kDigest});
        solvers.push_back(
            {name + "_int8", kernel, solve<Int8Cache>, Int8Cache::kBound, Int8Cache::kDigest});
    }
    return solvers;
}

class AttentionKernels : public ::testing::TestWithParam<Solver> {};

TEST_P(AttentionKernels, AgreeWithTheDefinition) {
    for (const int head_dim : {16, 64, 80, 96, 128, 256}) {
        for (const int n_columns : {1, 2, 3, 5, 6, 7, 12, 48}) {
            for (const int n_positions : {64, 256, 320, 1024}) {
                const Problem problem(head_dim, n_columns, n_positions, 1);
                const auto out = GetParam()(problem, 0, n_columns);
                for (int c = 0; c < n_columns; ++c) {
                    const auto expected = problem.expected(c);
                    for (int d = 0; d < head_dim; ++d) {
                        ASSERT_NEAR(out[Problem::at(c, head_dim, d)],
                                    expected[static_cast<std::size_t>(d)], GetParam().bound)
                            << head_dim << " channels, column " << c << " of " << n_columns << ", "
                            << n_positions;
                    }
                }
            }
        }
    }
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& numbers) {
    std::vector<std::uint32_t> bits;
    std::ranges::transform(numbers, std::back_inserter(bits),
                           [](float x) { return std::bit_cast<std::uint32_t>(x); });
    return bits;
}

TEST_P(AttentionKernels, AgreeWithTheDefinitionOfSoftCaps) {
    for (const float soft_cap : {0.25f, 2.0f, 50.0f}) {
        Problem problem(64, 7, 320, 1);
        problem.soft_cap = soft_cap;
        problem.queries[0] = 2000.0f;  // scores at the cap, and minus the cap
        const auto out = GetParam()(problem, 0, 7);
        for (int c = 0; c < 7; ++c) {
            const auto expected = problem.expected(c);
            for (int d = 0; d < 64; ++d) {
                // Next to one so large, an int8 query keeps nothing of its other numbers.
                const double bound = GetParam().bound * (c == 0 ? 4 : 1);
                ASSERT_NEAR(out[Problem::at(c, 64, d)], expected[static_cast<std::size_t>(d)],
                            bound)
                    << soft_cap << ", column " << c;
            }
        }
        const AttentionKernel& plain = attention_kernels().back();
        EXPECT_EQ(bits_of(out), bits_of(GetParam().solve(plain, problem, 0, 7))) << soft_cap;
    }
}

// Problems that reach every way through a kernel, with weights of all sizes down to zero.
std::vector<Problem> problems_of_every_kind() {
    std::vector<Problem> problems;
    for (const int head_dim : {16, 48, 80, 256}) {
        for (const int n_columns : {1, 2, 3, 4, 5, 6}) {
            for (const int n_positions : {64, 320}) {
                Problem& problem = problems.emplace_back(head_dim, n_columns, n_positions, 6);
                // Scores that differ by up to about 1, 30 and 300 powers of two.
                const float stretch = n_columns % 3 == 0   ? 300.0f
                                      : n_columns % 2 == 0 ? 30.0f
                                                           : 1.0f;
                for (float& query : problem.queries) {
                    query *= stretch / std::sqrt(static_cast<float>(head_dim));
                }
                // Where the heaviest positions are worth nothing, the lightest ones decide.
                for (int p = 0; p < n_positions; ++p) {
                    problem.values[Problem::at(p, head_dim, 3)] = p % 32 == 5 ? 1.0f : 0.0f;
                }
            }
        }
    }
    return problems;
}

TEST_P(AttentionKernels, HaveTheBitsOfTheReference) {
    const AttentionKernel& plain = attention_kernels().back();
    for (const Problem& problem : problems_of_every_kind()) {
        const auto expected = GetParam().solve(plain, problem, 0, problem.n_columns);
        ASSERT_EQ(bits_of(GetParam()(problem, 0, problem.n_columns)), bits_of(expected))
            << problem.head_dim << " channels, " << problem.n_columns << " columns, "
            << problem.n_positions << " positions";
    }
}

// The digest is the same on x86 and ARM, and whatever the C library.
TEST_P(AttentionKernels, HaveTheSameBitsOnEveryMachine) {
    std::uint64_t digest = 0xcbf29ce484222325U;  // FNV-1a
    for (const Problem& problem : problems_of_every_kind()) {
        for (const std::uint32_t bits : bits_of(GetParam()(problem, 0, problem.n_columns))) {
            digest = (digest ^ bits) * 0x100000001b3U;
        }
    }
    EXPECT_EQ(digest, GetParam().digest);
}

TEST_P(AttentionKernels, AColumnDoesNotDependOnTheOthers) {
    for (const int head_dim : {16, 64, 80, 128}) {
        const Problem problem(head_dim, 48, 576, 2);
        const auto all = GetParam()(problem, 0, 48);
        for (const int count : {1, 2, 3, 4, 5, 6, 11}) {
            for (int first = 0; first + count <= 48; first += 7) {
                const auto some = GetParam()(problem, first, count);
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
    EXPECT_EQ(GetParam()(longer, 0, 5), GetParam()(shorter, 0, 5));
}

// Prefixes of every length, all and nothing, beside masks that show other positions.
TEST_P(AttentionKernels, KnownPrefixesChangeNothing) {
    for (int length = 0; length <= 320; ++length) {
        Problem problem(64, 4, 320, 10);
        for (int p = 0; p < 320; ++p) {
            problem.mask[Problem::at(0, 320, p)] = p < length ? 0.0f : -kInfinity;
            problem.mask[Problem::at(2, 320, p)] = p < 320 - length ? 0.0f : -kInfinity;
        }
        const auto expected = GetParam()(problem, 0, 4);
        problem.tells_prefixes = true;
        ASSERT_EQ(GetParam()(problem, 0, 4), expected) << length;
    }
}

// Where all columns see known prefixes, the kernel may leave out what is behind the longest one.
TEST_P(AttentionKernels, PositionsBehindEveryPrefixChangeNothing) {
    constexpr int kColumns = 9;  // several groups
    for (const int head_dim : {64, 80}) {
        for (int length = 0; length <= 320; length += length < 70 ? 1 : 5) {
            Problem problem(head_dim, kColumns, 320, 12);
            for (int c = 0; c < kColumns; ++c) {
                // The longest one is in another place each time.
                const int own = std::max(length - 7 * ((c + length) % kColumns), 0);
                for (int p = 0; p < 320; ++p) {
                    problem.mask[Problem::at(c, 320, p)] = p < own ? 0.0f : -kInfinity;
                }
            }
            const auto expected = bits_of(GetParam()(problem, 0, kColumns));
            problem.tells_prefixes = true;
            ASSERT_EQ(bits_of(GetParam()(problem, 0, kColumns)), expected) << length;
        }
    }
}

// The hidden position would have the highest score and the largest value.
TEST_P(AttentionKernels, ContentsOfHiddenPositionsChangeNothing) {
    Problem problem(64, 3, 320, 7);
    for (int c = 0; c < 3; ++c) {
        problem.mask[Problem::at(c, 320, 70)] = -kInfinity;
    }
    const auto expected = GetParam()(problem, 0, 3);
    for (int d = 0; d < 64; ++d) {
        problem.keys[Problem::at(70, 64, d)] = 100.0f * problem.queries[Problem::at(0, 64, d)];
        problem.values[Problem::at(70, 64, d)] = 1000.0f;
    }
    EXPECT_EQ(GetParam()(problem, 0, 3), expected);
}

TEST_P(AttentionKernels, AColumnThatAttendsToNothingIsZero) {
    Problem problem(64, 2, 64, 4);
    std::fill(problem.mask.begin(), problem.mask.begin() + 64, -kInfinity);
    const auto out = GetParam()(problem, 0, 2);
    EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 64), std::vector<float>(64, 0.0f));
    EXPECT_NE(out[64], 0.0f);
}

TEST_P(AttentionKernels, LargeScoresDoNotOverflow) {
    Problem problem(64, 3, 320, 5);
    for (float& q : problem.queries) {
        q *= 200.0f;
    }
    for (const float x : GetParam()(problem, 0, 3)) {
        EXPECT_TRUE(std::isfinite(x));
        EXPECT_LT(std::abs(x), 6.0f) << "a mean lies within the range of its values";
    }
}

// A cache that was never written, and an all-zero query.
TEST_P(AttentionKernels, ZerosGiveZeros) {
    Problem problem(64, 2, 128, 8);
    std::fill(problem.keys.begin(), problem.keys.end(), 0.0f);
    std::fill(problem.values.begin(), problem.values.end(), 0.0f);
    std::fill(problem.queries.begin(), problem.queries.begin() + 64, 0.0f);
    EXPECT_EQ(GetParam()(problem, 0, 2), std::vector<float>(128, 0.0f));
}

// One position outweighs all others, as the first token often does, and its value is zero. The
// other positions must still keep their precision.
TEST_P(AttentionKernels, AnEmptySinkDoesNotDrownTheOthers) {
    Problem problem(64, 1, 256, 9);
    std::fill(problem.mask.begin(), problem.mask.end(), 0.0f);
    for (int d = 0; d < 64; ++d) {
        const float query = problem.queries[Problem::at(0, 64, d)];
        problem.keys[Problem::at(0, 64, d)] = query > 0 ? 0.75f : -0.75f;
        problem.values[Problem::at(0, 64, d)] = 0.0f;
        for (int p = 1; p < 256; ++p) {
            problem.values[Problem::at(p, 64, d)] = 1.0f;
        }
    }
    const auto out = GetParam()(problem, 0, 1);
    EXPECT_NEAR(out[0], problem.expected(0)[0], GetParam().bound);
    EXPECT_LT(out[0], 0.9f) << "the sink has some weight";
}

INSTANTIATE_TEST_SUITE_P(Machine,
                         AttentionKernels,
                         ::testing::ValuesIn(all_solvers()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace knap::attention_test
