#include "bench/copy_bound.h"

#include <vector>

#include <gtest/gtest.h>

namespace knap::bench::copy_bound_test {
namespace {

constexpr std::size_t kPrompt = 10;

// Two rounds of 0..4 as a prompt, and an answer of `n_answer` tokens that goes on with it.
std::vector<Token> loop(std::size_t n_answer) {
    std::vector<Token> text;
    for (std::size_t i = 0; i < kPrompt + n_answer; ++i) {
        text.push_back(static_cast<Token>(i % 5));
    }
    return text;
}

TEST(CopySpeed, OfATextThatLoopsIsWhatARoundEmits) {
    const std::vector<double> free_rows(5, 1.0);
    EXPECT_DOUBLE_EQ(copy_speed(loop(11), kPrompt, {.length = 4}, free_rows, 1), 5);
    EXPECT_DOUBLE_EQ(copy_speed(loop(11), kPrompt, {.length = 1}, free_rows, 1), 2);
    const std::vector<double> dear_rows{1, 2, 3, 4, 5};
    EXPECT_DOUBLE_EQ(copy_speed(loop(11), kPrompt, {.length = 4}, dear_rows, 1), 1);
}

TEST(CopySpeed, EndsWithTheText) {
    const std::vector<double> rows{1, 1.5, 2};
    // Three tokens, then one for which a copy would come too late.
    EXPECT_DOUBLE_EQ(copy_speed(loop(5), kPrompt, {.length = 2}, rows, 1), 4 / (2 + 1.0));
    EXPECT_DOUBLE_EQ(copy_speed(loop(1), kPrompt, {.length = 2}, rows, 1.25), 1.25)
        << "the first token is the prompt's, so nothing is left";
}

TEST(CopySpeed, WritesWhatDoesNotMatchWithTheOtherSource) {
    std::vector<Token> text = loop(1);
    for (Token token = 100; token < 108; ++token) {
        text.push_back(token);
    }
    const std::vector<double> rows{1, 1.5, 2};
    EXPECT_DOUBLE_EQ(copy_speed(text, kPrompt, {.min_match = 8, .length = 2}, rows, 1.6), 1.6);
    // The loop's end matches once, in vain: a round of 2 steps for one of the eight tokens.
    EXPECT_DOUBLE_EQ(copy_speed(text, kPrompt, {.length = 2}, rows, 1), 8 / (2 + 7.0));
}

TEST(CopyBound, IsTheBestRuleOrNone) {
    const std::vector<double> free_rows(5, 1.0);
    EXPECT_DOUBLE_EQ(copy_bound(loop(11), kPrompt, free_rows, 1), 5);
    const std::vector<double> dear_rows{1, 3, 5};
    EXPECT_DOUBLE_EQ(copy_bound(loop(11), kPrompt, dear_rows, 1), 1);
    EXPECT_DOUBLE_EQ(copy_bound(loop(11), kPrompt, dear_rows, 1.4), 1.4);
}

}  // namespace
}  // namespace knap::bench::copy_bound_test
