#include "sampling/overlap.h"

#include <gtest/gtest.h>

namespace knap::overlap_test {
namespace {

TEST(Overlap, IsTheSumOfTheSmallerProbabilities) {
    const Distribution p{.tokens = {1, 2, 3}, .probabilities = {0.5f, 0.3f, 0.2f}};
    const Distribution q{.tokens = {3, 1, 2}, .probabilities = {0.6f, 0.2f, 0.2f}};
    EXPECT_NEAR(overlap(p, q), 0.2 + 0.2 + 0.2, 1e-6);
    EXPECT_NEAR(overlap(q, p), overlap(p, q), 1e-12);
}

TEST(Overlap, IsOneWhenEqualAndZeroWhenDisjoint) {
    const Distribution p{.tokens = {1, 2}, .probabilities = {0.5f, 0.5f}};
    const Distribution other{.tokens = {3}, .probabilities = {1.0f}};
    EXPECT_NEAR(overlap(p, p), 1, 1e-6);
    EXPECT_EQ(overlap(p, other), 0);
}

}  // namespace
}  // namespace knap::overlap_test
