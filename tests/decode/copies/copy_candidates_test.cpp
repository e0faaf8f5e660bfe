#include "decode/copies/copy_candidates.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::copy_candidates_test {
namespace {

using Tokens = std::vector<Token>;
using Standing = CopyEvidence::Standing;
using ::testing::IsEmpty;

std::vector<CopyCandidate> candidates_after(CopiedTexts& texts, std::size_t n_most = 8) {
    std::vector<CopyCandidate> candidates;
    rank_candidates(texts.find(), {}, n_most, candidates);
    return candidates;
}

std::vector<CopyCandidate> candidates_after(const Tokens& text, std::size_t n_most = 8) {
    CopiedTexts texts;
    texts.begin(text);
    return candidates_after(texts, n_most);
}

TEST(CopyCandidates, TheOnlyMatchLeads) {
    const auto candidates = candidates_after({1, 2, 3, 9, 2, 3});
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_EQ(candidates[0].token, 9);
    EXPECT_EQ(candidates[0].evidence.length, 2);
    EXPECT_EQ(candidates[0].evidence.standing, Standing::leading);
}

TEST(CopyCandidates, SeveralMatchesMayAgree) {
    const auto candidates = candidates_after({1, 2, 9, 5, 2, 9, 6, 1, 2});
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_EQ(candidates[0].token, 9);
    EXPECT_EQ(candidates[0].evidence.standing, Standing::agreed);
    EXPECT_EQ(candidates[0].evidence.length, 2);
    EXPECT_EQ(candidates[0].matches.size(), 2u);
}

// 4 votes for 8 by a match of two tokens; 2 and 1 for 9 by matches of one, the later one first.
TEST(CopyCandidates, LongAndLateMatchesHaveMoreVotes) {
    const auto longest = candidates_after({1, 2, 8, 5, 2, 9, 6, 2, 9, 7, 1, 2});
    ASSERT_EQ(longest.size(), 2u);
    EXPECT_EQ(longest[0].token, 8);
    EXPECT_EQ(longest[0].evidence.standing, Standing::contested) << "4 of 7 votes";
    EXPECT_EQ(longest[1].evidence.standing, Standing::second) << "3 of 7";
    EXPECT_EQ(longest[1].evidence.length, 1);
}

// As when a text is edited again and again.
TEST(CopyCandidates, TheLatestVersionOfATextWins) {
    const auto candidates =
        candidates_after({1, 2, 7, 5, 1, 2, 7, 6, 1, 2, 7, 4, 1, 2, 8, 3, 1, 2});
    ASSERT_EQ(candidates.size(), 2u);
    EXPECT_EQ(candidates[0].token, 8);
    EXPECT_EQ(candidates[0].evidence.standing, Standing::contested) << "4 of 7.5 votes";
    EXPECT_EQ(candidates[1].matches.size(), 3u);
}

TEST(CopyCandidates, AreAsManyAsAskedFor) {
    const auto candidates = candidates_after({2, 7, 2, 8, 2, 9, 2});
    ASSERT_EQ(candidates.size(), 3u);
    EXPECT_EQ(candidates[0].token, 9);
    EXPECT_EQ(candidates[0].evidence.standing, Standing::contested);
    EXPECT_EQ(candidates[1].token, 8);
    EXPECT_EQ(candidates[1].evidence.standing, Standing::second);
    EXPECT_EQ(candidates_after({2, 7, 2, 8, 2, 9, 2}, 2).size(), 2u);
}

TEST(CopyCandidates, ChoicesWithFewVotesAreRare) {
    const auto candidates = candidates_after({2, 5, 60, 2, 9, 61, 2, 9, 62, 2, 9, 63, 2});
    ASSERT_EQ(candidates.size(), 2u);
    EXPECT_EQ(candidates[1].token, 5);
    EXPECT_EQ(candidates[1].evidence.standing, Standing::rare);
}

TEST(CopyCandidates, NothingFollowsTheEndOfAReference) {
    CopiedTexts texts;
    const std::vector<Tokens> references = {{1, 2, 3}};
    texts.begin(Tokens{1, 2, 3}, references);
    EXPECT_THAT(candidates_after(texts), IsEmpty());
}

// In a loop the latest match goes on into the tokens that come after the text.
TEST(CopyCandidates, MatchesGoOnIntoTheDraft) {
    CopiedTexts texts;
    texts.begin(Tokens{1, 2, 3, 1, 2, 3});
    Match match = texts.find().front();
    ASSERT_EQ(match.next, 3u);
    match.next += 3;
    EXPECT_EQ(token_after(match, Tokens{4, 5, 6}), 4);
    match.next += 2;
    EXPECT_EQ(token_after(match, Tokens{4, 5, 6}), 6);
    EXPECT_EQ(token_after(match, Tokens{4, 5}), std::nullopt);
}

}  // namespace
}  // namespace knap::copy_candidates_test
