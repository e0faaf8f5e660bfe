#include "decode/knapspec/copy_drafts.h"

#include <algorithm>
#include <iterator>
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

std::vector<Token> tokens_of(const std::vector<CopyNode>& nodes) {
    std::vector<Token> tokens;
    std::ranges::transform(nodes, std::back_inserter(tokens), &CopyNode::token);
    return tokens;
}

// The probability that token i of a chain is right if those before it are.
double acceptance_at(const std::vector<CopyNode>& chain, std::size_t i) {
    return chain.at(i).reached / (i > 0 ? chain.at(i - 1).reached : 1);
}

TEST(CopyDrafts, OffersWhatFollowedAnEarlierMatch) {
    CopyDrafts copies;
    const auto text = repeating(50, 10);
    copies.begin({.prompt = text});
    EXPECT_EQ(tokens_of(copies.offer(4)), (std::vector<Token>{0, 1, 2, 3}));
}

TEST(CopyDrafts, OffersNothingWithoutAMatchOrRoom) {
    CopyDrafts copies;
    std::vector<Token> text(50);
    std::iota(text.begin(), text.end(), 0);
    copies.begin({.prompt = text});
    EXPECT_TRUE(copies.offer(4).empty());
    const auto loop = repeating(50, 10);
    copies.begin({.prompt = loop});
    EXPECT_TRUE(copies.offer(0).empty());
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
    EXPECT_GT(acceptance_at(right.offer(1), 0), 0.95);
    EXPECT_LT(acceptance_at(wrong.offer(1), 0), 0.1);
}

TEST(CopyDrafts, FollowAPredictionFromTheFirstToken) {
    const std::vector<Token> prediction = {50, 51, 52, 53, 54, 55};
    std::vector<Token> text = {1, 2, 3};
    CopyDrafts copies;
    copies.begin({.prompt = text, .prediction = prediction});
    text.push_back(50);
    copies.follow(text);
    const auto offer = copies.offer(3);
    EXPECT_EQ(tokens_of(offer), (std::vector<Token>{51, 52, 53}));
    EXPECT_GT(acceptance_at(offer, 2), 0.9);
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
    EXPECT_LT(acceptance_at(copies.offer(1), 0), 0.3);
}

TEST(CopyDrafts, StructuredTextIsTrustedMoreThanProse) {
    const std::vector<Token> loop = {7, 8, 9, 7, 8};
    CopyDrafts prose;
    CopyDrafts structured;
    prose.begin({.prompt = loop});
    structured.begin({.prompt = loop, .is_constrained = true});
    EXPECT_GT(acceptance_at(structured.offer(1), 0), acceptance_at(prose.offer(1), 0) + 0.08);
}

TEST(CopyDrafts, ChoicesOfAGrammarHaveAnAcceptanceOfTheirOwn) {
    auto text = repeating(40, 10);
    CopyDrafts copies;
    copies.begin({.prompt = text, .is_constrained = true});
    EXPECT_LT(acceptance_at(copies.offer(2, /*is_choice=*/true), 0),
              acceptance_at(copies.offer(2), 0) - 0.1);
    // Whatever comes where there is a choice is new; the rest of the text repeats.
    for (int i = 0; i < 20; ++i) {
        copies.offer(2, /*is_choice=*/true);
        text.push_back(100 + i);
        for (int k = 0; k < 9; ++k) {
            text.push_back(k);
        }
        copies.follow(text);
    }
    const auto offer = copies.offer(3, /*is_choice=*/true);
    EXPECT_LT(acceptance_at(offer, 0), 0.2);
    EXPECT_GT(acceptance_at(offer, 2), 0.6);
    EXPECT_GT(acceptance_at(copies.offer(1), 0), 0.5) << "no choice";
}

TEST(CopyDrafts, AreSuspendedWhenTheyLoseTime) {
    CopyDrafts copies;
    auto text = repeating(50, 10);
    copies.begin({.prompt = text});
    int n_rounds = 0;
    while (copies.record_round({.ms = 10, .plain_ms = 8, .step_ms = 4})) {
        ASSERT_LT(++n_rounds, 20);
    }
    EXPECT_TRUE(copies.offer(4).empty());
    for (int i = 0; i < 64; ++i) {
        text.push_back(static_cast<Token>(text.size()) % 10);
    }
    copies.follow(text);
    EXPECT_FALSE(copies.offer(4).empty()) << "tried again 64 tokens later";
}

// 1 2 was followed by 3 and by 4.
const std::vector<Token> kTwoWays = {1, 2, 3, 8, 8, 1, 2, 4, 7, 7, 1, 2};

TEST(CopyDrafts, BranchOnlyWhereTheyMay) {
    CopyDrafts chains;
    CopyDrafts trees(/*may_branch=*/true);
    chains.begin({.prompt = kTwoWays});
    trees.begin({.prompt = kTwoWays});
    const auto n_first = [](const std::vector<CopyNode>& nodes) {
        return std::ranges::count(nodes, kPendingNode, &CopyNode::parent);
    };
    EXPECT_EQ(n_first(chains.offer(8)), 1);
    EXPECT_EQ(n_first(trees.offer(8)), 2);
    trees.begin({.prompt = kTwoWays, .is_constrained = true});
    EXPECT_EQ(n_first(trees.offer(8)), 1) << "what a grammar forces is a chain";
}

TEST(CopyDrafts, WhatIsLearnedGreedilyIsNotBelievedWhileSampling) {
    const SamplingOptions sampled{.temperature = 0.7f};
    auto text = repeating(40, 10);
    CopyDrafts copies;
    copies.begin({.prompt = text, .sampling = sampled});
    const double believed = acceptance_at(copies.offer(1), 0);
    copies.begin({.prompt = text});
    for (int i = 0; i < 30; ++i) {
        text.insert(text.end(), {3, 4, 100 + i});
    }
    copies.follow(text);
    const auto loop = repeating(40, 10);
    copies.begin({.prompt = loop, .sampling = sampled});
    EXPECT_EQ(acceptance_at(copies.offer(1), 0), believed);
}

TEST(CopyDrafts, CopyFromReferences) {
    const std::vector<std::vector<Token>> references = {{5, 6, 7, 20, 21, 22}};
    CopyDrafts copies;
    copies.begin({.prompt = std::vector<Token>{9, 5, 6, 7}, .references = references});
    EXPECT_EQ(tokens_of(copies.offer(8)), (std::vector<Token>{20, 21, 22}));
}

TEST(CopyDrafts, NewTextLiftsTheSuspension) {
    CopyDrafts copies;
    const auto text = repeating(50, 10);
    copies.begin({.prompt = text});
    while (copies.record_round({.ms = 10, .plain_ms = 5, .step_ms = 5})) {
    }
    copies.begin({.prompt = text});
    EXPECT_FALSE(copies.offer(4).empty());
}

}  // namespace
}  // namespace knap::copy_drafts_test
