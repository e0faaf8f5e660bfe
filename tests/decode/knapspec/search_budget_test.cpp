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

TEST(SearchBudget, LendsAPartOfTheAnswer) {
    SearchBudget budget(0.01);
    EXPECT_EQ(budget.left_with_loan_ms(0, 1000, 10), 0);
    EXPECT_DOUBLE_EQ(budget.left_with_loan_ms(10, 1000, 10), 25) << "a part of what is written";
    EXPECT_DOUBLE_EQ(budget.left_with_loan_ms(500, 1000, 10), 400) << "and of the answer, at most";
    EXPECT_EQ(budget.left_with_loan_ms(50, 60, 10), 0) << "too short";
    budget.advance(100, 0);
    budget.spend(24);
    EXPECT_DOUBLE_EQ(budget.left_with_loan_ms(10, 1000, 10), 1);
    EXPECT_DOUBLE_EQ(budget.left_ms(), -23) << "which the budget has to pay back";
    budget.advance(100000, 0);
    EXPECT_EQ(budget.left_with_loan_ms(500, 1000, 10), budget.left_ms()) << "no need for a loan";
    EXPECT_EQ(SearchBudget(0).left_with_loan_ms(500, 1000, 10), 0);
}

TEST(SearchBudget, TimeIsSpentOnce) {
    SearchBudget budget(1);
    budget.advance(10000, 0);
    {
        const SpendingTime spending(budget);
        budget.spend(2000);  // more than passes
    }
    EXPECT_EQ(budget.left_ms(), 8000);
    {
        const SpendingTime spending(budget);
        const Stopwatch watch;
        while (watch.elapsed_ms() < 1) {
        }
    }
    EXPECT_LE(budget.left_ms(), 7999);
}

TEST(SearchBudget, ExpectsAnAnswerToGoOn) {
    EXPECT_EQ(expected_answer(10, 20), 30);
    EXPECT_EQ(expected_answer(10, 8000), 522);
    EXPECT_EQ(expected_answer(2000, 8000), 4000);
    EXPECT_EQ(expected_answer(2000, 100), 2100);
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
