#include "decode/lookup/lookup_source.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::lookup_source_test {
namespace {

using Tokens = std::vector<Token>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LookupSource, ReturnsTheContinuationAndTheMatchLength) {
    LookupSource source;
    const Tokens text = {1, 2, 3, 4, 5, 10, 11, 12, 2, 3, 4, 5};
    source.begin(text);
    const auto found = source.find(text, 2);
    EXPECT_THAT(found.tokens, ElementsAre(10, 11));
    EXPECT_EQ(found.match_length, 4);
}

TEST(LookupSource, ReturnsNothingWithoutAMatchOrARequest) {
    LookupSource source;
    source.begin(Tokens{1, 2, 3});
    EXPECT_THAT(source.find(Tokens{1, 2, 3}, 5).tokens, IsEmpty());
    EXPECT_EQ(source.find(Tokens{1, 2, 3}, 5).match_length, 0);
    EXPECT_THAT(source.find(Tokens{1, 2, 3, 1, 2, 3}, 0).tokens, IsEmpty());
    EXPECT_THAT(source.find(Tokens{1, 2, 3, 1, 2, 3}, 4).tokens, ElementsAre(1, 2, 3, 1));
}

TEST(LookupSource, UsesTheGivenRangeOfRunLengths) {
    const Tokens text = {9, 2, 3, 10, 1, 2, 3};
    LookupSource long_runs({.min = 3, .max = 4});
    long_runs.begin(text);
    EXPECT_THAT(long_runs.find(text, 1).tokens, IsEmpty());
    LookupSource short_runs({.min = 1, .max = 1});
    short_runs.begin(text);
    const auto found = short_runs.find(text, 1);
    EXPECT_THAT(found.tokens, ElementsAre(10));
    EXPECT_EQ(found.match_length, 2) << "counted beyond the runs that are indexed";
}

TEST(LookupSource, CopiesFromReferencesUpToTheirEnds) {
    LookupSource source;
    const std::vector<Tokens> references = {{1, 2, 30, 31}, {5, 6, 40}};
    Tokens text = {9, 1, 2};
    source.begin(text, references);
    EXPECT_THAT(source.find(text, 8).tokens, ElementsAre(30, 31));
    text.insert(text.end(), {5, 6});
    EXPECT_THAT(source.find(text, 8).tokens, ElementsAre(40));
    text.insert(text.end(), {7, 8, 5, 6});
    EXPECT_THAT(source.find(text, 3).tokens, ElementsAre(7, 8, 5)) << "the text itself is later";
    text.insert(text.end(), {30, 31});
    EXPECT_THAT(source.find(text, 3).tokens, IsEmpty()) << "nothing follows the end of a reference";
}

TEST(LookupSource, OtherReferencesReplaceTheOldOnes) {
    LookupSource source;
    const std::vector<Tokens> old = {{1, 2, 30}};
    const std::vector<Tokens> others = {{1, 2, 50}};
    const Tokens text = {9, 1, 2};
    source.begin(text, old);
    source.begin(text, others);
    EXPECT_THAT(source.find(text, 1).tokens, ElementsAre(50));
    source.begin(text);
    EXPECT_THAT(source.find(text, 1).tokens, IsEmpty());
}

}  // namespace
}  // namespace knap::lookup_source_test
