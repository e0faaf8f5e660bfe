#include "decode/knapspec/search_budget.h"

#include <limits>

#include <gtest/gtest.h>

namespace knap::search_budget_test {
namespace {

TEST(SearchBudget, IsAShareOfTheTimeSoFar) {
    SearchBudget budget(0.02);
    EXPECT_EQ(budget.left_ms(), 0);
    budget.advance(1000, 0);
    EXPECT_DOUBLE_EQ(budget.left_ms(), 20);
    budget.spend(15);
    EXPECT_DOUBLE_EQ(budget.left_ms(), 5);
    budget.advance(1500, 0);
    EXPECT_DOUBLE_EQ(budget.left_ms(), 15);
}

TEST(SearchBudget, NewRequestStartsWithNothing) {
    SearchBudget budget(0.02);
    budget.advance(1000, 0);
    budget.spend(5);
    budget.begin();
    EXPECT_EQ(budget.left_ms(), 0);
    budget.advance(100, 0);
    EXPECT_DOUBLE_EQ(budget.left_ms(), 2);
}

TEST(SearchBudget, ClockJumpBuysNoSearch) {
    SearchBudget budget(0.02);
    budget.advance(1000, 0);
    budget.advance(1e9, 50);
    EXPECT_DOUBLE_EQ(budget.left_ms(), 0.02 * 1050);
    budget.advance(500, 50);  // jumps back
    EXPECT_DOUBLE_EQ(budget.left_ms(), 0.02 * 1050);
    budget.advance(510, 50);
    EXPECT_DOUBLE_EQ(budget.left_ms(), 0.02 * 1060);
    budget.advance(std::numeric_limits<double>::quiet_NaN(), 50);
    budget.spend(std::numeric_limits<double>::quiet_NaN());
    budget.spend(-3);
    EXPECT_DOUBLE_EQ(budget.left_ms(), 0.02 * 1060);
}

}  // namespace
}  // namespace knap::search_budget_test
