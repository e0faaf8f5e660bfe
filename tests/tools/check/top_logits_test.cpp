#include "tools/check/top_logits.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace knap::test::top_logits_test {
namespace {

using Row = std::vector<float>;

TEST(TopLogits, ChangeByTheDifferenceOfTwo) {
    const Row reference{1, 5, 4, 3};
    const TopLogits top(reference);
    EXPECT_EQ(top.gap_change(reference), 0);
    EXPECT_EQ(top.gap_change(Row{1, 5, 4.5f, 3}), 0.5);
    EXPECT_EQ(top.gap_change(Row{1, 4.5f, 4.25f, 3}), 0.75) << "two move towards each other";
    EXPECT_EQ(top.gap_change(Row{3, 7, 6, 5}), 0) << "what all have in common cancels out";
}

TEST(TopLogits, LeaveOutLogitsFarBelowTheBest) {
    Row reference(100, 0.0f);
    for (std::size_t i = 0; i < 64; ++i) {
        reference[i] = static_cast<float>(100 - i);
    }
    Row row = reference;
    row[80] = 7;
    EXPECT_EQ(TopLogits(reference).gap_change(row), 0);
    row[80] = 101;
    EXPECT_EQ(TopLogits(reference).gap_change(row), 101) << "unless one becomes the best";
}

TEST(TopLogits, ChangeIsNotANumberWhereALogitIsNone) {
    const Row reference{1, 5, 4};
    EXPECT_TRUE(std::isnan(TopLogits(reference).gap_change(Row{1, std::nanf(""), 4})));
    EXPECT_TRUE(std::isnan(TopLogits(reference).gap_change(Row{std::nanf(""), 5, 4})));
}

}  // namespace
}  // namespace knap::test::top_logits_test
