#include "search/cosine.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace knap::cosine_test {
namespace {

using Row = std::vector<float>;

TEST(Cosine, IsTheCosineOfTheAngle) {
    EXPECT_DOUBLE_EQ(cosine(Row{1, 0}, Row{3, 0}), 1.0);
    EXPECT_DOUBLE_EQ(cosine(Row{1, 0}, Row{0, 2}), 0.0);
    EXPECT_DOUBLE_EQ(cosine(Row{1, 2}, Row{-2, -4}), -1.0);
    EXPECT_DOUBLE_EQ(cosine(Row{1, 0}, Row{1, 1}), std::sqrt(0.5));
}

// Lengths below and above the vectorised width: every value counts once.
TEST(Cosine, UsesEveryValueOfARowOfAnyLength) {
    for (std::size_t n = 1; n <= 35; ++n) {
        Row a(n);
        Row b(n);
        double ab = 0;
        double aa = 0;
        double bb = 0;
        for (std::size_t i = 0; i < n; ++i) {
            a[i] = 1.0f + static_cast<float>(i);
            b[i] = i % 3 == 0 ? -2.0f : 5.0f;
            ab += static_cast<double>(a[i]) * b[i];
            aa += static_cast<double>(a[i]) * a[i];
            bb += static_cast<double>(b[i]) * b[i];
        }
        EXPECT_NEAR(cosine(a, b), ab / std::sqrt(aa * bb), 1e-14) << n;
    }
}

TEST(Cosine, DistinguishesRowsThatHardlyDiffer) {
    Row a(576, 1.0f);
    Row b = a;
    EXPECT_EQ(cosine(a, b), 1.0);
    b[0] = 1.001f;
    EXPECT_LT(cosine(a, b), 1.0);
    EXPECT_GT(cosine(a, b), 1.0 - 1e-8);
}

TEST(Cosine, DoesNotOverflow) {
    EXPECT_DOUBLE_EQ(cosine(Row{1e30f, 1e30f}, Row{2e30f, 2e30f}), 1.0);
}

TEST(Cosine, OfARowOfZerosIsZero) {
    EXPECT_EQ(cosine(Row{0, 0}, Row{1, 2}), 0.0);
    EXPECT_EQ(cosine(Row{0, 0}, Row{0, 0}), 0.0);
}

TEST(Cosine, OfValuesThatAreNotFiniteIsNaN) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(cosine(Row{nan, 0}, Row{1, 2})));
    EXPECT_TRUE(std::isnan(cosine(Row{1, 2}, Row{infinity, 1})));
}

TEST(Cosine, IsSummedRowByRow) {
    const Row a{1, 0, /**/ 1, 0, /**/ 1, 1};
    const Row b{5, 0, /**/ 0, 1, /**/ 1, 1};
    EXPECT_DOUBLE_EQ(sum_of_cosines(a, b, 3), 2.0);
}

}  // namespace
}  // namespace knap::cosine_test
