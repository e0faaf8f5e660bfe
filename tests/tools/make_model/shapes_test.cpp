#include "tools/make_model/shapes.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "knap/types.h"

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
