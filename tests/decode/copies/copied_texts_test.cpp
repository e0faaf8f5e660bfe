#include "decode/copies/copied_texts.h"

#include <random>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::copied_texts_test {
namespace {

using Tokens = std::vector<Token>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What followed each match, and how long it was.
std::vector<std::pair<Token, int>> found(CopiedTexts& texts) {
    std::vector<std::pair<Token, int>> all;
    for (const Match& match : texts.find()) {
        const auto text = match.index->text();
        all.emplace_back(match.next < text.size() ? text[match.next] : -2, match.length);
    }
    return all;
}

using Found = std::pair<Token, int>;

TEST(CopiedTexts, LongMatchesComeFirstThenTheConversationThenLateTexts) {
    CopiedTexts texts;
    const std::vector<Tokens> references = {{1, 2, 3, 30}, {2, 3, 40}, {2, 3, 50}};
    texts.begin(Tokens{2, 3, 10, 1, 2, 3}, references);
    EXPECT_THAT(found(texts), ElementsAre(Found{30, 3}, Found{10, 2}, Found{50, 2}, Found{40, 2}));
}

TEST(CopiedTexts, APredictionIsTheLatestReference) {
    CopiedTexts texts;
    const std::vector<Tokens> references = {{2, 3, 40}};
    texts.begin(Tokens{9, 2, 3}, references, Tokens{2, 3, 60});
    EXPECT_THAT(found(texts), ElementsAre(Found{60, 2}, Found{40, 2}));
    texts.begin(Tokens{9, 2, 3}, references);
    EXPECT_THAT(found(texts), ElementsAre(Found{40, 2})) << "the next request has none";
}

TEST(CopiedTexts, AnotherPromptCutsTheConversation) {
    CopiedTexts texts;
    texts.begin(Tokens{1, 2, 3, 4});
    texts.follow(Tokens{1, 2, 3, 4, 1, 2});
    EXPECT_THAT(found(texts), ElementsAre(Found{3, 2}));
    texts.begin(Tokens{1, 2, 5, 1, 2});
    EXPECT_THAT(found(texts), ElementsAre(Found{5, 2}));
    texts.begin(Tokens{7, 1, 2});
    EXPECT_THAT(found(texts), IsEmpty());
}

TEST(CopiedTexts, TheOldestReferencesAreLeftOutWhereThereAreTooMany) {
    CopiedTexts texts;
    const Tokens large(CopiedTexts::kMaxReferenceTokens - 2, 8);
    const std::vector<Tokens> references = {{1, 2, 30}, {1, 2, 40}, large};
    texts.begin(Tokens{1, 2}, references);
    EXPECT_THAT(found(texts), IsEmpty());
    const std::vector<Tokens> fewer = {{1, 2, 30}, {1, 2, 40}};
    texts.begin(Tokens{1, 2}, fewer);
    EXPECT_THAT(found(texts), ElementsAre(Found{40, 2}, Found{30, 2}));
}

// Conversations that go on, are cut and change, with references that come and go.
TEST(CopiedTexts, HistoryOfRequestsDoesNotMatter) {
    std::mt19937 random(11);
    const auto below = [&](std::size_t n) { return random() % n; };
    const auto run = [&](std::size_t n) {
        Tokens tokens;
        for (std::size_t i = 0; i < n; ++i) {
            tokens.push_back(static_cast<Token>(below(4)));
        }
        return tokens;
    };
    CopiedTexts kept;
    Tokens text = run(30);
    std::vector<Tokens> references;
    for (int request = 0; request < 200; ++request) {
        text.resize(below(text.size() + 1));
        const Tokens more = run(1 + below(20));
        text.insert(text.end(), more.begin(), more.end());
        references.erase(
            references.begin(),
            references.begin() + static_cast<std::ptrdiff_t>(
                                     below(std::min<std::size_t>(3, references.size() + 1))));
        if (below(5) == 0 && !references.empty()) {
            references.pop_back();
        }
        for (std::size_t i = below(3); i > 0; --i) {
            references.push_back(run(below(20)));
        }
        const Tokens prediction = run(below(2) * 15);
        kept.begin(text, references, prediction);
        CopiedTexts fresh;
        fresh.begin(text, references, prediction);
        ASSERT_EQ(found(kept), found(fresh)) << request;
        const Tokens answer = run(below(10));
        text.insert(text.end(), answer.begin(), answer.end());
        kept.follow(text);
        fresh.follow(text);
        ASSERT_EQ(found(kept), found(fresh)) << request;
    }
}

}  // namespace
}  // namespace knap::copied_texts_test
