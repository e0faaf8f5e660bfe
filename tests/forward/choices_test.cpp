#include "forward/choices.h"

#include <vector>

#include <gtest/gtest.h>

namespace knap::choices_test {
namespace {

TEST(Choices, AreTheLowestIdOfTheLargestLogit) {
    EXPECT_EQ(choice_of(std::vector<float>{1, 3, 2, 3}), 1);
    EXPECT_EQ(choice_of(std::vector<float>{-1}), 0);
}

TEST(Choices, AreAppendedRowByRow) {
    std::vector<Token> choices{7};
    append_choices(std::vector<float>{0, 1, 0, /**/ 5, 1, 2, /**/ 0, 0, 4}, 3, choices);
    EXPECT_EQ(choices, (std::vector<Token>{7, 1, 0, 2}));
}

}  // namespace
}  // namespace knap::choices_test
