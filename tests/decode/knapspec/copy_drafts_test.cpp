#include "decode/knapspec/copy_drafts.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace knap::copy_drafts_test {
namespace {

// `n` tokens that repeat with period `period`.
std::vector<Token> repeating(int n, int period) {
    std::vector<Token> text;
    for (int i = 0; i < n; ++i) {
        text.push_back(i % period);
    }
    return text;
}

TEST(CopyDrafts, OffersWhatFollowedAnEarlierMatch) {
    CopyDrafts copies;
    const auto text = repeating(50, 10);
    copies.begin({.prompt = text});
    const auto offer = copies.offer(text, 4);
    ASSERT_TRUE(offer.has_value());
    EXPECT_EQ(std::vector<Token>(offer->tokens.begin(), offer->tokens.end()),
              (std::vector<Token>{0, 1, 2, 3}));
    EXPECT_EQ(offer->acceptance.first.size(), 4u);
}

TEST(CopyDrafts, OffersNothingWithoutAMatchOrRoom) {
    CopyDrafts copies;
    std::vector<Token> text(50);
    std::iota(text.begin(), text.end(), 0);
    copies.begin({.prompt = text});
    EXPECT_FALSE(copies.offer(text, 4).has_value());
    const auto loop = repeating(50, 10);
    copies.begin({.prompt = loop});
    EXPECT_FALSE(copies.offer(loop, 0).has_value());
}

// No copy is drafted here: every position of the text tests the copy that could have been drafted.
TEST(CopyDrafts, LearnsFromEveryPositionOfTheText) {
    CopyDrafts right;
    CopyDrafts wrong;
    auto text = repeating(40, 10);
    right.begin({.prompt = text});
    wrong.begin({.prompt = text});
    auto other = text;
    for (int i = 0; i < 100; ++i) {
        text.push_back(static_cast<Token>(text.size()) % 10);
        // Starts like the loop, but never continues like it.
        other.insert(other.end(), {3, 4, 100 + i});
    }
    right.follow(text);
    wrong.follow(other);
    other.insert(other.end(), {3, 4});
    wrong.follow(other);
    EXPECT_GT(right.offer(text, 1)->acceptance.at(0), 0.95);
    EXPECT_LT(wrong.offer(other, 1)->acceptance.at(0), 0.1);
}

std::vector<Token> tokens_of(const std::optional<CopyDrafts::Offer>& offer) {
    return offer ? std::vector<Token>(offer->tokens.begin(), offer->tokens.end())
                 : std::vector<Token>();
}

TEST(CopyDrafts, FollowAPredictionFromTheFirstToken) {
    const std::vector<Token> prediction = {50, 51, 52, 53, 54, 55};
    std::vector<Token> text = {1, 2, 3};
    CopyDrafts copies;
    copies.begin({.prompt = text, .prediction = prediction});
    text.push_back(50);
    copies.follow(text);
    const auto offer = copies.offer(text, 3);
    EXPECT_EQ(tokens_of(offer), (std::vector<Token>{51, 52, 53}));
    EXPECT_GT(offer->acceptance.at(2), 0.9);
}

TEST(CopyDrafts, APredictionThatIsWrongIsGivenUp) {
    const auto prediction = repeating(100, 10);
    auto text = repeating(50, 10);
    CopyDrafts copies;
    copies.begin({.prompt = text, .prediction = prediction});
    for (int i = 0; i < 30; ++i) {  // agrees for two tokens, never for three
        text.insert(text.end(), {3, 4, 100 + i});
    }
    text.insert(text.end(), {3, 4});
    copies.follow(text);
    EXPECT_LT(copies.offer(text, 1)->acceptance.at(0), 0.3);
}

TEST(CopyDrafts, StructuredTextIsTrustedMoreThanProse) {
    const std::vector<Token> loop = {7, 8, 9, 7, 8};
    CopyDrafts prose;
    CopyDrafts structured;
    prose.begin({.prompt = loop});
    structured.begin({.prompt = loop, .is_constrained = true});
    EXPECT_GT(structured.offer(loop, 1)->acceptance.at(0),
              prose.offer(loop, 1)->acceptance.at(0) + 0.2);
}

TEST(CopyDrafts, ChoicesOfAGrammarHaveAnAcceptanceOfTheirOwn) {
    auto text = repeating(40, 10);
    CopyDrafts copies;
    copies.begin({.prompt = text, .is_constrained = true});
    EXPECT_LT(copies.offer(text, 2, /*is_choice=*/true)->acceptance.at(0),
              copies.offer(text, 2)->acceptance.at(0) - 0.2);
    // Whatever comes where there is a choice is new; the rest of the text repeats.
    for (int i = 0; i < 20; ++i) {
        copies.offer(text, 2, /*is_choice=*/true);
        text.push_back(100 + i);
        for (int k = 0; k < 9; ++k) {
            text.push_back(k);
        }
        copies.follow(text);
    }
    const auto offer = copies.offer(text, 3, /*is_choice=*/true);
    EXPECT_LT(offer->acceptance.at(0), 0.2);
    EXPECT_GT(offer->acceptance.at(2), 0.6);
    EXPECT_GT(copies.offer(text, 1)->acceptance.at(0), 0.6) << "no choice";
}

TEST(CopyDrafts, AreSuspendedWhenTheyLoseTime) {
    CopyDrafts copies;
    auto text = repeating(50, 10);
    copies.begin({.prompt = text});
    int n_rounds = 0;
    while (copies.record_round(/*ms=*/10, /*plain_ms=*/8)) {
        ASSERT_LT(++n_rounds, 20);
    }
    EXPECT_FALSE(copies.offer(text, 4).has_value());
    for (int i = 0; i < 64; ++i) {
        text.push_back(static_cast<Token>(text.size()) % 10);
    }
    copies.follow(text);
    EXPECT_TRUE(copies.offer(text, 4).has_value()) << "tried again 64 tokens later";
}

TEST(CopyDrafts, NewTextLiftsTheSuspension) {
    CopyDrafts copies;
    const auto text = repeating(50, 10);
    copies.begin({.prompt = text});
    while (copies.record_round(10, 5)) {
    }
    copies.begin({.prompt = text});
    EXPECT_TRUE(copies.offer(text, 4).has_value());
}

}  // namespace
}  // namespace knap::copy_drafts_test
