#include "decode/lookup/prediction_cursor.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/lookup/ngram_index.h"

namespace knap::prediction_cursor_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The cursor after an answer that began like this.
PredictionCursor after(const std::vector<Token>& prediction, const std::vector<Token>& answer) {
    PredictionCursor cursor;
    cursor.begin(prediction);
    for (const Token token : answer) {
        cursor.accept(token);
    }
    return cursor;
}

const std::vector<Token> kPrediction = {1, 2, 3, 4, 5, 1, 2, 6, 7, 8};

TEST(PredictionCursor, ExpectsTheBeginningFirst) {
    EXPECT_THAT(after(kPrediction, {}).next(), testing::ElementsAreArray(kPrediction));
    EXPECT_EQ(after(kPrediction, {}).match_length(), NgramIndex::kLongestMatch);
}

TEST(PredictionCursor, MovesWithTheAnswerAndNotToOtherOccurrences) {
    EXPECT_THAT(after(kPrediction, {1, 2}).next(), ElementsAre(3, 4, 5, 1, 2, 6, 7, 8));
    EXPECT_THAT(after(kPrediction, {1, 2, 3, 4, 5, 1, 2}).next(), ElementsAre(6, 7, 8));
}

TEST(PredictionCursor, IsLostUntilTwoTokensAgree) {
    EXPECT_THAT(after(kPrediction, {1, 2, 9}).next(), IsEmpty());
    EXPECT_EQ(after(kPrediction, {1, 2, 9}).match_length(), 0);
    EXPECT_THAT(after(kPrediction, {1, 2, 9, 4}).next(), IsEmpty());
    EXPECT_THAT(after(kPrediction, {1, 2, 9, 4, 5}).next(), ElementsAre(1, 2, 6, 7, 8));
    EXPECT_EQ(after(kPrediction, {1, 2, 9, 4, 5}).match_length(), 2);
    EXPECT_EQ(after(kPrediction, {1, 2, 9, 4, 5, 1}).match_length(), 3);
}

TEST(PredictionCursor, FindsTheNearestPlace) {
    // `1 2` is at the beginning and in the middle; the answer has left the prediction at its end.
    EXPECT_THAT(after(kPrediction, {1, 2, 3, 4, 5, 1, 2, 6, 9, 1, 2}).next(), ElementsAre(6, 7, 8));
}

TEST(PredictionCursor, ANewTokenThatEndsARunIsFoundAtOnce) {
    // The answer leaves out `4`: its last two tokens, `5 1`, are not there before `1` comes.
    EXPECT_THAT(after(kPrediction, {1, 2, 3, 5, 1}).next(), ElementsAre(2, 6, 7, 8));
}

TEST(PredictionCursor, EndsWithThePrediction) {
    EXPECT_THAT(after(kPrediction, kPrediction).next(), IsEmpty());
    auto longer = kPrediction;
    longer.push_back(3);
    EXPECT_THAT(after(kPrediction, longer).next(), IsEmpty());
}

TEST(PredictionCursor, SaysNothingWithoutAPrediction) {
    EXPECT_THAT(after({}, {1, 2, 3}).next(), IsEmpty());
}

}  // namespace
}  // namespace knap::prediction_cursor_test
