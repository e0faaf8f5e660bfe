// A row's result does not depend on the rows that run with it: one row at a time, many rows at once
// and any split of a prompt give the same cache and the same logits.
#include <algorithm>
#include <numbers>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "kernels/matmul/matmul.h"
#include "support/loaded_model.h"
#include "support/rounding_error.h"
#include "support/tiny_model.h"
#include "tools/make_model/shapes.h"

namespace knap::test::row_invariance_test {
namespace {

constexpr int kTokens = 300;  // several buckets, more than two attention blocks

struct InvarianceCase {
    const char* shape;
    const char* type;
    Repack repack = Repack::off;
    CacheType cache = CacheType::f16;     // q8_0 keys go with f16 values but on the kernel path
    std::optional<AttentionPath> path{};  // none: what the engine chooses
    Kernels kernels = Kernels::ggml;      // of products
};

// Products with our own kernels.
InvarianceCase packed(const char* shape, const char* type, CacheType cache = CacheType::f16) {
    return {.shape = shape,
            .type = type,
            .repack = Repack::automatic,
            .cache = cache,
            .kernels = Kernels::automatic};
}

void PrintTo(const InvarianceCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type
         << (c.kernels == Kernels::automatic ? "/packed"
             : c.repack == Repack::off       ? ""
                                             : "/repacked")
         << (c.cache == CacheType::f32    ? "/f32 cache"
             : c.cache == CacheType::q8_0 ? "/q8_0"
                                          : "")
         << (c.path ? concat("/", to_string(*c.path)) : "");
}

std::vector<int> single_rows() {
    return std::vector<int>(kTokens, 1);
}

std::vector<int> random_split(unsigned seed, int max_rows) {
    std::mt19937 engine(seed);
    std::vector<int> passes;
    for (int left = kTokens; left > 0; left -= passes.back()) {
        passes.push_back(
            std::min(left, 1 + static_cast<int>(engine() % static_cast<unsigned>(max_rows))));
    }
    return passes;
}

struct Outcome {
    std::vector<std::vector<float>> logits;
    std::vector<std::byte> cache;
};

class RowInvariance : public ::testing::TestWithParam<InvarianceCase> {
  protected:
    RowInvariance()
        : model_(tiny_model(GetParam().shape, GetParam().type),
                 GetParam().repack,
                 /*n_threads=*/1,
                 GetParam().kernels) {}

    Outcome run(const std::vector<int>& passes) {
        const bool has_other_values =
            GetParam().cache == CacheType::q8_0 && GetParam().path != AttentionPath::kernel;
        const CacheType values = has_other_values ? CacheType::f16 : GetParam().cache;
        ForwardRig rig(model_, {.capacity = 512,
                                .type_k = GetParam().cache,
                                .type_v = values,
                                .path = GetParam().path});
        auto logits = rig.feed(tokens(), passes);
        return {std::move(logits), rig.cache_bytes()};
    }

    std::vector<Token> tokens() const { return random_tokens(kTokens, model_.config.n_vocab, 11); }

    LoadedModel model_;

    void expect_identical(const std::vector<int>& a_passes, const std::vector<int>& b_passes) {
        const Outcome a = run(a_passes);
        const Outcome b = run(b_passes);
        EXPECT_TRUE(a.cache == b.cache);
        for (std::size_t i = 0; i < a.logits.size(); ++i) {
            ASSERT_TRUE(a.logits[i] == b.logits[i]) << "row " << i;
        }
    }
};

using ExactRows = RowInvariance;
using ExactFewRows = RowInvariance;
using NearlyExactRows = RowInvariance;

TEST_P(ExactRows, AnySplitIsBitIdentical) {
    if (GetParam().kernels == Kernels::automatic && !has_fast_matmul()) {
        GTEST_SKIP() << "no kernels of ours on this machine";
    }
    const std::vector<int> whole{kTokens};
    expect_identical(whole, single_rows());
    for (const unsigned seed : {1u, 2u, 3u}) {
        expect_identical(whole, random_split(seed, 40));
    }
}

// The weight types for which ggml's kernels keep the promise whatever the number of rows.
INSTANTIATE_TEST_SUITE_P(
    Types,
    ExactRows,
    ::testing::Values(
        InvarianceCase{"tiny-llama", "Q8_0"},
        InvarianceCase{"tiny-llama", "Q4_0"},
        InvarianceCase{"tiny-llama", "Q4_0", Repack::automatic},
        InvarianceCase{"tiny-llama", "Q4_1"},
        InvarianceCase{"tiny-llama", "Q5_0"},
        InvarianceCase{"tiny-llama", "Q5_1"},
        InvarianceCase{"tiny-llama", "MXFP4"},
        InvarianceCase{"tiny-llama", "MXFP4", Repack::automatic},
        InvarianceCase{"tiny-llama", "IQ4_NL", Repack::automatic},
        InvarianceCase{"tiny-mha", "Q4_1"},
        InvarianceCase{"tiny-llama", "Q4_1", Repack::off, CacheType::f16, AttentionPath::folded},
        InvarianceCase{"tiny-mha", "Q4_1", Repack::off, CacheType::f16, AttentionPath::folded},
        InvarianceCase{"small-qwen3", "Q8_0", Repack::off, CacheType::f16, AttentionPath::folded},
        InvarianceCase{"small-qwen3", "Q8_0"},
        InvarianceCase{"tiny-qwen2", "Q8_0"},
        InvarianceCase{"tiny-qwen3", "Q4_1"},
        InvarianceCase{"small-llama", "Q4_0", Repack::automatic},
        InvarianceCase{"small-llama", "Q4_1", Repack::off, CacheType::f32},
        InvarianceCase{"small-llama", "Q4_1", Repack::off, CacheType::q8_0},
        InvarianceCase{"small-llama", "Q4_1", Repack::off, CacheType::q8_0, AttentionPath::kernel},
        InvarianceCase{"tiny-mha", "Q4_1", Repack::off, CacheType::q8_0, AttentionPath::kernel},
        InvarianceCase{"tiny-qwen3", "Q8_0", Repack::off, CacheType::q8_0, AttentionPath::kernel}));

// Ours keep it for every type that they take.
INSTANTIATE_TEST_SUITE_P(Kernels,
                         ExactRows,
                         ::testing::Values(packed("tiny-llama", "Q4_0"),
                                           packed("tiny-llama", "Q4_1"),
                                           packed("tiny-qwen2", "Q5_0"),
                                           packed("tiny-llama", "Q5_1"),
                                           packed("tiny-qwen3", "Q8_0"),
                                           packed("small-llama", "Q2_K"),
                                           packed("small-llama", "Q3_K"),
                                           packed("small-llama", "Q4_K"),
                                           packed("small-llama", "Q4_K_M"),
                                           packed("small-llama", "Q5_K"),
                                           packed("small-llama", "Q6_K"),
                                           packed("tiny-qwen3", "IQ4_NL"),
                                           packed("small-llama", "IQ4_XS"),
                                           packed("tiny-llama", "MXFP4"),
                                           packed("tiny-mha", "F16"),
                                           packed("tiny-llama", "BF16"),
                                           packed("tiny-qwen2", "F32"),
                                           packed("small-llama", "Q4_1", CacheType::f32),
                                           packed("tiny-gemma3", "F16"),
                                           packed("small-qwen3moe", "Q4_K_M"),
                                           packed("tiny-gpt-oss", "MXFP4"),
                                           packed("tiny-mixtral", "F16")));

// Every architecture: with our products, and an int8 cache.
std::vector<InvarianceCase> packed_shapes() {
    std::vector<InvarianceCase> cases;
    for (const char* shape : shapes_named("tiny-")) {
        cases.push_back(packed(shape, "Q8_0"));
        cases.push_back({shape, "Q4_1", Repack::automatic, CacheType::q8_0, AttentionPath::kernel,
                         Kernels::automatic});
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Architectures, ExactRows, ::testing::ValuesIn(packed_shapes()));

// With ggml's, which are not exact where layers have experts.
std::vector<InvarianceCase> dense_shapes() {
    std::vector<InvarianceCase> cases;
    for (const char* shape : shapes_named("tiny-")) {
        if (find_shape(shape).experts.n_experts == 0) {
            for (const AttentionPath path : {AttentionPath::kernel, AttentionPath::folded}) {
                cases.push_back({shape, "Q8_0", Repack::off, CacheType::f16, path});
            }
        }
    }
    return cases;
}

INSTANTIATE_TEST_SUITE_P(DenseArchitectures, ExactRows, ::testing::ValuesIn(dense_shapes()));

// From 8 rows on ggml multiplies K-quants with another kernel; below that the promise holds.
TEST_P(ExactFewRows, SplitsOfFewerThanEightRowsAreBitIdentical) {
    expect_identical(single_rows(), random_split(1, 7));
    expect_identical(single_rows(), random_split(2, 7));
}

INSTANTIATE_TEST_SUITE_P(Types,
                         ExactFewRows,
                         ::testing::Values(InvarianceCase{"small-llama", "Q2_K"},
                                           InvarianceCase{"small-llama", "Q3_K"},
                                           InvarianceCase{"small-llama", "Q4_K"},
                                           InvarianceCase{"small-llama", "Q5_K"},
                                           InvarianceCase{"small-llama", "Q6_K"}));

// Float types and IQ4_NL take other kernels for one row than for several, K-quants from 8 rows on,
// repacked Q4_K from 4. Each of the two kernels rounds the factors of a product once, to the type
// that goes with the weights, so they can differ by two such roundings (support/rounding_error.h):
// sqrt(2) times the root mean square of one, and twice its largest. On an Intel Xeon (family 6,
// model 207) they differ by at most 0.66 times the mean and 0.74 times the largest, on Q6_K and
// Q4_K.
TEST_P(NearlyExactRows, SplitsStayWithinTheRoundingOfTwoKernels) {
    LoadedModel stored(tiny_model(GetParam().shape, GetParam().type));
    const RoundingError rounding = rounding_error(stored, tokens(), Factors::as_stored);
    const Outcome whole = run({kTokens});
    for (const auto& passes : {single_rows(), random_split(1, 40)}) {
        const RoundingError found = difference(run(passes).logits, whole.logits);
        EXPECT_LT(found.relative, std::numbers::sqrt2 * rounding.relative);
        EXPECT_LT(found.max_abs, 2 * rounding.max_abs);
    }
}

INSTANTIATE_TEST_SUITE_P(Types,
                         NearlyExactRows,
                         ::testing::Values(InvarianceCase{"tiny-llama", "F32"},
                                           InvarianceCase{"tiny-llama", "F16"},
                                           InvarianceCase{"tiny-llama", "BF16"},
                                           InvarianceCase{"tiny-llama", "IQ4_NL"},
                                           InvarianceCase{"tiny-mha", "F16"},
                                           InvarianceCase{"small-llama", "Q4_K"},
                                           InvarianceCase{"small-llama", "Q6_K"},
                                           InvarianceCase{"small-llama", "Q4_K", Repack::on}));

// Rows on both sides of every kind of bucket edge: where steps are 64, where they turn to 256, and
// a chunk of the kernel.
TEST(BucketEdges, CrossingThemOneByOneEqualsCrossingThemAtOnce) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    const auto tokens = random_tokens(1300, model.config.n_vocab, 13);
    const std::vector<ForwardOptions> caches{
        {.capacity = 2048, .path = AttentionPath::kernel},
        {.capacity = 2048,
         .type_k = CacheType::q8_0,
         .type_v = CacheType::q8_0,
         .path = AttentionPath::kernel},
        {.capacity = 2048, .path = AttentionPath::folded},
    };
    for (std::size_t i = 0; i < caches.size(); ++i) {
        for (const int edge : {64, 128, 256, 512, 1024, 1280}) {
            const int before = edge - 3;
            std::vector<int> start(static_cast<std::size_t>(before / 500), 500);
            start.push_back(before % 500);
            std::vector<int> at_once = start;
            at_once.push_back(6);
            std::vector<int> one_by_one = start;
            one_by_one.insert(one_by_one.end(), 6, 1);
            const auto input = std::span(tokens).first(static_cast<std::size_t>(before + 6));
            ForwardRig a(model, caches[i]);
            ForwardRig b(model, caches[i]);
            ASSERT_TRUE(a.feed(input, at_once) == b.feed(input, one_by_one))
                << "cache " << i << ", " << edge;
            ASSERT_TRUE(a.cache_bytes() == b.cache_bytes()) << "cache " << i << ", " << edge;
        }
    }
}

TEST(Threads, DoNotChangeARow) {
    const auto path = tiny_model("small-llama", "Q4_1");
    std::vector<std::vector<float>> expected;
    for (const int n_threads : {1, 2, 3}) {
        LoadedModel model(path, Repack::off, n_threads);
        ForwardRig rig(model, {.capacity = 512});
        const auto rows =
            rig.feed(random_tokens(20, model.config.n_vocab, 5), std::vector<int>{17, 1, 2});
        if (expected.empty()) {
            expected = rows;
        }
        EXPECT_TRUE(rows == expected) << n_threads << " threads";
    }
}

// Seven threads have less than a block of a row each, and some of them no group of a matrix.
TEST(Threads, ShareOurProductsWithoutChangingARow) {
    for (const char* type : {"Q4_K_M", "F16"}) {
        std::vector<std::vector<float>> expected;
        for (const int n_threads : {1, 2, 7}) {
            LoadedModel model(tiny_model("small-llama", type), Repack::automatic, n_threads,
                              Kernels::automatic);
            ForwardRig rig(model, {.capacity = 512});
            const auto rows =
                rig.feed(random_tokens(20, model.config.n_vocab, 5), std::vector<int>{17, 1, 2});
            expected = expected.empty() ? rows : expected;
            EXPECT_TRUE(rows == expected) << type << ", " << n_threads << " threads";
        }
    }
}

}  // namespace
}  // namespace knap::test::row_invariance_test
