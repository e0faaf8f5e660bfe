#include "serve/engine/answer_memory.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::answer_memory_test {
namespace {

using Tokens = std::vector<Token>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Tokens answer(int n, Token token) {
    return Tokens(static_cast<std::size_t>(n), token);
}

TEST(AnswerMemory, KeepsTheAnswersOfAKeyForThatKeyAlone) {
    AnswerMemory memory(100);
    memory.add("a", answer(10, 1));
    memory.add("a", answer(20, 2));
    memory.add("b", answer(10, 3));
    EXPECT_THAT(memory.answers("a"), ElementsAre(answer(10, 1), answer(20, 2)));
    EXPECT_THAT(memory.answers("b"), ElementsAre(answer(10, 3)));
    EXPECT_THAT(memory.answers(""), IsEmpty());
}

TEST(AnswerMemory, TheOldestAnswersMakeRoom) {
    AnswerMemory memory(30);
    memory.add("a", answer(10, 1));
    memory.add("a", answer(10, 2));
    memory.add("a", answer(11, 3));
    EXPECT_THAT(memory.answers("a"), ElementsAre(answer(10, 2), answer(11, 3)));
    memory.add("a", answer(1000, 4));
    EXPECT_THAT(memory.answers("a"), ElementsAre(answer(30, 4)));
}

TEST(AnswerMemory, TheKeyThatAskedLongestAgoIsForgotten) {
    AnswerMemory memory(30, /*max_keys=*/2);
    memory.add("a", answer(10, 1));
    memory.add("b", answer(10, 2));
    memory.answers("a");
    memory.add("c", answer(10, 3));
    EXPECT_THAT(memory.answers("b"), IsEmpty());
    EXPECT_THAT(memory.answers("a"), ElementsAre(answer(10, 1)));
}

TEST(AnswerMemory, KeepsNothingShortAndNothingWhenSwitchedOff) {
    AnswerMemory memory(30);
    memory.add("a", answer(7, 1));
    EXPECT_THAT(memory.answers("a"), IsEmpty());
    AnswerMemory off(0);
    off.add("a", answer(20, 1));
    EXPECT_THAT(off.answers("a"), IsEmpty());
}

}  // namespace
}  // namespace knap::answer_memory_test
