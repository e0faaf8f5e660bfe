#include "decode/copies/suffix_index.h"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::suffix_index_test {
namespace {

using Tokens = std::vector<Token>;
using Match = SuffixIndex::Match;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::size_t kAll = 100000;

// Tokens before `place` that equal the end of `tail`, up to an end mark.
int naive_length(const Tokens& text, std::size_t place, const Tokens& tail) {
    int length = 0;
    while (length < SuffixIndex::kLongestMatch) {
        const auto i = static_cast<std::size_t>(length);
        if (i >= place || i >= tail.size() || text[place - 1 - i] != tail[tail.size() - 1 - i] ||
            text[place - 1 - i] == SuffixIndex::kEndMark) {
            break;
        }
        ++length;
    }
    return length;
}

std::vector<Match> naive_matches(const Tokens& text, const Tokens& tail, int min_length) {
    std::vector<Match> matches;
    for (std::size_t place = 0; place < text.size(); ++place) {
        const int length = naive_length(text, place, tail);
        if (text[place] != SuffixIndex::kEndMark && length >= min_length) {
            matches.push_back({.next = place, .length = length});
        }
    }
    std::ranges::sort(matches, [](const Match& a, const Match& b) {
        return a.length != b.length ? a.length > b.length : a.next > b.next;
    });
    return matches;
}

std::vector<Match> find(const SuffixIndex& index,
                        const Tokens& tail,
                        int min_length = 1,
                        std::size_t n_most = kAll) {
    std::vector<Match> matches;
    index.find(tail, min_length, n_most, matches);
    return matches;
}

Tokens text_of(const SuffixIndex& index) {
    return {index.text().begin(), index.text().end()};
}

// All matches, and the longest few of them.
void expect_naive(const SuffixIndex& index, const Tokens& tail) {
    for (const int min_length : {1, 2, 5}) {
        const auto expected = naive_matches(text_of(index), tail, min_length);
        ASSERT_EQ(find(index, tail, min_length), expected);
        for (const std::size_t n_most : {std::size_t{1}, std::size_t{3}}) {
            const auto some = find(index, tail, min_length, n_most);
            ASSERT_EQ(some.size(), std::min(n_most, expected.size()));
            for (std::size_t i = 0; i < some.size(); ++i) {
                ASSERT_EQ(some[i].length, expected[i].length);
                ASSERT_TRUE(std::ranges::find(expected, some[i]) != expected.end());
            }
        }
    }
}

TEST(SuffixIndex, FindsLongMatchesFirstAndThenLateOnes) {
    SuffixIndex index;
    index.append(Tokens{1, 2, 3, 4, 9, 3, 4, 8, 2, 3, 4});
    EXPECT_THAT(find(index, text_of(index)),
                ElementsAre(Match{.next = 4, .length = 3}, Match{.next = 7, .length = 2}));
    EXPECT_THAT(find(index, {4}),
                ElementsAre(Match{.next = 7, .length = 1}, Match{.next = 4, .length = 1}));
    EXPECT_THAT(find(index, {5}), IsEmpty());
    EXPECT_THAT(find(index, {}), IsEmpty());
}

TEST(SuffixIndex, MatchesEndWithTheirTexts) {
    SuffixIndex index;
    index.append(Tokens{1, 2, 3});
    index.end_text();
    index.append(Tokens{2, 3, 5});
    index.end_text();
    EXPECT_THAT(find(index, {1, 2, 3}), ElementsAre(Match{.next = 6, .length = 2}))
        << "nothing follows the end of the first text, and the second begins with a 2";
    EXPECT_THAT(find(index, {5}), IsEmpty());
    EXPECT_THAT(find(index, {SuffixIndex::kEndMark}), IsEmpty());
}

TEST(SuffixIndex, CountsMatchesUpToALimit) {
    SuffixIndex index;
    index.append(Tokens(100, 7));
    const auto matches = find(index, text_of(index));
    EXPECT_EQ(matches.size(), 99u);
    EXPECT_EQ(matches.front(), (Match{.next = 99, .length = SuffixIndex::kLongestMatch}));
    EXPECT_EQ(matches.back(), (Match{.next = 1, .length = 1}));
}

struct RandomText {
    const char* name;
    int n_tokens;  // of the vocabulary
    int period;    // 0: not repetitive
};

void PrintTo(const RandomText& kind, std::ostream* out) {
    *out << kind.name;
}

class SuffixIndexProperties : public ::testing::TestWithParam<RandomText> {
  protected:
    Tokens random_run(std::size_t length) {
        const RandomText& kind = GetParam();
        Tokens run;
        for (std::size_t i = 0; i < length; ++i) {
            const bool repeats = kind.period > 0 && below(40) > 0;
            run.push_back(repeats ? static_cast<int>(n_made_ % kind.period) : below(kind.n_tokens));
            ++n_made_;
        }
        return run;
    }
    int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  private:
    std::mt19937 random_{5};
    int n_made_ = 0;
};

// Appends, ends, cuts and drops at random, and looks up the end of the text and of others.
TEST_P(SuffixIndexProperties, AgreesWithARescan) {
    for (int run = 0; run < 30; ++run) {
        SuffixIndex index;
        for (int step = 0; step < 40; ++step) {
            const Tokens text = text_of(index);
            const bool has_text = std::ranges::find(text, SuffixIndex::kEndMark) != text.end();
            switch (below(7)) {
                case 0:
                    index.end_text();
                    break;
                case 1:
                    index.truncate(
                        static_cast<std::size_t>(below(static_cast<int>(text.size()) + 1)));
                    break;
                case 2:
                    if (has_text) {
                        index.drop_first_text();
                    }
                    break;
                case 3:
                    if (!text.empty() && text.back() == SuffixIndex::kEndMark) {
                        index.drop_last_text();
                    }
                    break;
                default:
                    index.append(random_run(static_cast<std::size_t>(below(60))));
                    break;
            }
            expect_naive(index, text_of(index));
            expect_naive(index, random_run(20));
        }
    }
}

// Beyond the size of a block, which random runs above rarely reach.
TEST_P(SuffixIndexProperties, AgreesWithARescanOfALongText) {
    SuffixIndex index;
    index.append(random_run(3000));
    expect_naive(index, text_of(index));
    index.truncate(1200);
    expect_naive(index, text_of(index));
    index.append(random_run(700));
    expect_naive(index, text_of(index));
}

INSTANTIATE_TEST_SUITE_P(Texts,
                         SuffixIndexProperties,
                         ::testing::Values(RandomText{"FewTokens", 3, 0},
                                           RandomText{"ManyTokens", 200, 0},
                                           RandomText{"OneToken", 1, 0},
                                           RandomText{"Loop", 9, 7},
                                           RandomText{"LongLoop", 60, 50}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(SuffixIndex, DroppedTextsLeaveTheOrderOfAFreshIndex) {
    std::mt19937 random(3);
    SuffixIndex index;
    std::deque<Tokens> texts;
    for (int round = 0; round < 60; ++round) {
        Tokens text;
        for (int i = 0; i < 50; ++i) {
            text.push_back(static_cast<Token>(random() % 5));
        }
        index.append(text);
        index.end_text();
        texts.push_back(text);
        if (texts.size() > 6) {
            index.drop_first_text();
            texts.pop_front();
        }
        SuffixIndex fresh;
        for (const Tokens& kept : texts) {
            fresh.append(kept);
            fresh.end_text();
        }
        ASSERT_EQ(text_of(index), text_of(fresh));
        ASSERT_EQ(find(index, text), find(fresh, text));
    }
}

// What is dropped makes room, however many texts have come and gone.
TEST(SuffixIndex, MemoryFollowsTheTextsThatAreKept) {
    std::mt19937 random(4);
    SuffixIndex index;
    constexpr std::size_t kTokens = 20000;
    constexpr std::size_t kBytesPerToken = 20;
    for (int round = 0; round < 20; ++round) {
        Tokens text;
        for (std::size_t i = 0; i < kTokens; ++i) {
            text.push_back(static_cast<Token>(random() % 500));
        }
        index.append(text);
        index.end_text();
        if (round > 0) {
            index.drop_first_text();
        }
        ASSERT_LT(index.n_bytes(), 3 * kTokens * kBytesPerToken) << round;
    }
}

}  // namespace
}  // namespace knap::suffix_index_test
