#include "tools/make_model/shapes.h"

#include <algorithm>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "knap/types.h"

#include "tools/make_model/random_tensors.h"

namespace knap::shapes_test {
namespace {

TEST(Shapes, TinyIsTinyLlama) {
    EXPECT_EQ(find_shape("tiny").name, "tiny-llama");
}

TEST(Shapes, NamesAreDistinctAndFindTheirShape) {
    std::set<std::string_view> names;
    for (const ModelShape& shape : known_shapes()) {
        EXPECT_TRUE(names.insert(shape.name).second) << shape.name;
        EXPECT_EQ(&find_shape(shape.name), &shape);
    }
}

TEST(Shapes, HeadsDivideEvenly) {
    for (const ModelShape& shape : known_shapes()) {
        EXPECT_EQ(shape.n_heads % shape.n_kv_heads, 0) << shape.name;
        EXPECT_EQ(shape.head_dim % 2, 0) << shape.name;
    }
}

// In billions, as their model cards say.
TEST(Shapes, FullOnesHaveTheParametersOfTheirCheckpoints) {
    constexpr std::pair<const char*, double> kBillions[] = {
        {"llama-3.1-8b", 8.03},   {"qwen3-8b", 8.19},      {"phi-4", 14.66},
        {"gemma-3-4b", 3.88},     {"olmo-2-7b", 7.30},     {"gemma-3-27b", 27.01},
        {"exaone-4.0-32b", 32.0}, {"phi-4-mini", 3.84},    {"gpt-oss-20b", 20.91},
        {"mixtral-8x7b", 46.70},  {"qwen3-30b-a3b", 30.53}};
    for (const auto& [name, expected] : kBillions) {
        const ModelShape& shape = find_shape(name);
        double n = 0;
        for (const RandomTensor& tensor :
             declare_random_tensors(shape, parse_weight_recipe("F16", "", shape.has_tied_head))) {
            n += tensor.values.empty() ? static_cast<double>(tensor.n_in * tensor.n_rows) : 0;
        }
        EXPECT_NEAR(n * 1e-9, expected, 0.005 * expected) << name;
    }
}

TEST(Shapes, DivisorsForLongContextsAreInFilesThatStretchThem) {
    const auto has_divisors = [](const char* name) {
        const auto tensors =
            declare_random_tensors(find_shape(name), parse_weight_recipe("F16", "", false));
        return std::ranges::find(tensors, "rope_factors_long.weight", &RandomTensor::name) !=
               tensors.end();
    };
    EXPECT_TRUE(has_divisors("phi-4-mini"));
    EXPECT_FALSE(has_divisors("phi-4"));
    EXPECT_FALSE(has_divisors("tiny-llama"));
}

TEST(Shapes, NoScalingMeansNoRopeDivisors) {
    EXPECT_TRUE(rope_frequency_divisors(find_shape("tiny")).empty());
}

// Base 500000, 64 channels, original context 8192: pair i turns once in 2 pi 500000^(i/32)
// positions.
TEST(Shapes, RopeDivisorsFollowTheLlama3Formula) {
    const auto divisors = rope_frequency_divisors(find_shape("llama-3.2-1b"));
    ASSERT_EQ(divisors.size(), 32u);
    EXPECT_EQ(divisors[0], 1.0f);    // 6.3 positions: far below 8192 / 4, unchanged
    EXPECT_EQ(divisors[14], 1.0f);   // 1956 positions: still below 2048
    EXPECT_EQ(divisors[18], 32.0f);  // 10089 positions: above 8192, slowed by the full factor
    EXPECT_EQ(divisors[31], 32.0f);
    // 4442.9 positions are 1.84384 turns; (1.84384 - 1) / 3 = 0.281281 is kept:
    // 1 / (0.718719 / 32 + 0.281281) = 3.29228.
    EXPECT_NEAR(divisors[16], 3.29228f, 1e-4f);
}

TEST(Shapes, RopeDivisorsGrowFromOneToTheFactor) {
    const auto divisors = rope_frequency_divisors(find_shape("llama-3.1-8b"));
    ASSERT_EQ(divisors.size(), 64u);
    EXPECT_TRUE(std::is_sorted(divisors.begin(), divisors.end()));
    EXPECT_EQ(divisors.front(), 1.0f);
    EXPECT_EQ(divisors.back(), 8.0f);
}

}  // namespace
}  // namespace knap::shapes_test
