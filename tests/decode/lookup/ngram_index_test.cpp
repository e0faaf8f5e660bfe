#include "decode/lookup/ngram_index.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace knap::ngram_index_test {
namespace {

using Match = std::optional<NgramIndex::Match>;

struct Lengths {
    int min;
    int max;
};

// How many tokens before `next` match the end of the text.
int count_match(std::span<const Token> text, std::size_t next) {
    std::size_t length = 0;
    while (length < next && text[next - length - 1] == text[text.size() - length - 1]) {
        ++length;
    }
    return static_cast<int>(length);
}

// The definition: for each length, the longest first, walk back from the end.
Match rescan(std::span<const Token> text, Lengths lengths) {
    for (int n = lengths.max; n >= lengths.min; --n) {
        const auto length = static_cast<std::size_t>(n);
        for (std::size_t next = text.size(); next-- > length;) {
            if (std::ranges::equal(text.subspan(next - length, length), text.last(length))) {
                const int found = std::min(count_match(text, next), NgramIndex::kLongestMatch);
                return NgramIndex::Match{.length = found, .next = next};
            }
        }
    }
    return std::nullopt;
}

void expect_same(const Match& found, const Match& expected) {
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (found) {
        ASSERT_EQ(found->length, expected->length);
        ASSERT_EQ(found->next, expected->next);
    }
}

std::vector<Token> random_text(std::mt19937& random, std::size_t size, unsigned n_letters) {
    std::vector<Token> text(size);
    std::ranges::generate(text, [&] { return static_cast<Token>(random() % n_letters); });
    return text;
}

Match find_end(const std::vector<Token>& text, Lengths lengths) {
    NgramIndex index(lengths.min, lengths.max);
    index.append(text);
    return index.find_end();
}

TEST(NgramIndex, FindsTheMostRecentEarlierOccurrence) {
    expect_same(find_end({1, 2, 7, 1, 2, 8, 1, 2}, {2, 2}), NgramIndex::Match{2, 5});
}

TEST(NgramIndex, TriesLongRunsFirst) {
    const std::vector<Token> text = {9, 1, 2, 7, 5, 1, 2, 8, 9, 1, 2};
    expect_same(find_end(text, {2, 3}), NgramIndex::Match{3, 3});
    expect_same(find_end(text, {2, 2}), NgramIndex::Match{2, 7});
}

TEST(NgramIndex, OccurrenceMayOverlapTheEnd) {
    expect_same(find_end({4, 4, 4}, {2, 2}), NgramIndex::Match{2, 2});
    expect_same(find_end({4, 4, 4, 4}, {2, 2}), NgramIndex::Match{3, 3});
}

TEST(NgramIndex, MatchExtendsAsFarAsTheTextsAgree) {
    expect_same(find_end({1, 2, 3, 4, 5, 9, 2, 3, 4, 5}, {2, 3}), NgramIndex::Match{4, 5});
    expect_same(find_end({2, 3, 4, 5, 9, 2, 3, 4, 5}, {2, 3}), NgramIndex::Match{4, 4});
    expect_same(find_end(std::vector<Token>(20, 7), {2, 3}), NgramIndex::Match{19, 19});
    expect_same(find_end(std::vector<Token>(60, 7), {2, 3}), NgramIndex::Match{32, 59});
}

TEST(NgramIndex, EndDoesNotMatchItself) {
    expect_same(find_end({}, {1, 3}), std::nullopt);
    expect_same(find_end({1}, {1, 3}), std::nullopt);
    expect_same(find_end({1, 2, 3}, {1, 3}), std::nullopt);
}

TEST(NgramIndex, FindingChangesNothing) {
    NgramIndex index(1, 2);
    index.append(std::vector<Token>{1, 2, 1});
    expect_same(index.find_end(), NgramIndex::Match{1, 1});
    expect_same(index.find_end(), NgramIndex::Match{1, 1});
}

TEST(NgramIndex, AgreesWithARescanAfterAppendsAndResets) {
    std::mt19937 random(5);
    for (const Lengths lengths : {Lengths{1, 1}, {2, 3}, {1, 4}, {3, 3}}) {
        for (const unsigned n_letters : {1u, 2u, 3u, 6u, 40u}) {
            NgramIndex index(lengths.min, lengths.max);
            std::vector<Token> text;
            for (int step = 0; step < 400; ++step) {
                if (random() % 100 == 0) {
                    index.clear();
                    text.clear();
                }
                const auto tokens = random_text(random, random() % 4, n_letters);
                index.append(tokens);
                text.insert(text.end(), tokens.begin(), tokens.end());
                ASSERT_TRUE(std::ranges::equal(index.text(), text));
                expect_same(index.find_end(), rescan(text, lengths));
            }
        }
    }
}

TEST(NgramIndex, AgreesWithARescanAfterGrowingManyTimes) {
    constexpr Lengths kLengths{2, 3};
    std::mt19937 random(6);
    NgramIndex index(kLengths.min, kLengths.max);
    for (int request = 0; request < 2; ++request) {
        index.clear();
        // Most of the 40,000 pairs of 200 letters occur; nearly all runs of three are new.
        std::vector<Token> text;
        for (int step = 0; step < 200; ++step) {
            const auto tokens = random_text(random, 200, 200);
            index.append(tokens);
            text.insert(text.end(), tokens.begin(), tokens.end());
            expect_same(index.find_end(), rescan(text, kLengths));
        }
    }
}

}  // namespace
}  // namespace knap::ngram_index_test
