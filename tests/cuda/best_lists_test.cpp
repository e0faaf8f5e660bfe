// Lists of the best tokens, as the host reads them.
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cuda/results/best_tokens.h"

namespace knap::test::best_lists_test {
namespace {

constexpr int kBest = 3;
constexpr auto kRoom = static_cast<std::size_t>(best_room(kBest));

// Lists of these lengths, with tokens 100, 101, ... in the first, 200, ... in the second.
std::vector<std::uint64_t> lists_of(const std::vector<std::uint64_t>& lengths) {
    std::vector<std::uint64_t> lists;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        lists.push_back(lengths[i]);
        for (std::size_t k = 0; k < kRoom; ++k) {
            lists.push_back(rank_key(1.0f, static_cast<Token>(100 * (i + 1) + k)));
        }
    }
    return lists;
}

std::vector<Token> tokens_of(const std::vector<std::uint64_t>& lengths) {
    std::vector<RankKey> keys{rank_key(1.0f, 7)};  // of the row before
    append_best(lists_of(lengths), kBest, keys);
    std::vector<Token> tokens;
    for (const RankKey key : keys) {
        tokens.push_back(token_of(key));
    }
    return tokens;
}

TEST(BestLists, AreAppendedAsFarAsTheyGo) {
    EXPECT_EQ(tokens_of({2, 0, 3}), (std::vector<Token>{7, 100, 101, 300, 301, 302}));
    EXPECT_EQ(tokens_of({kRoom}).size(), 1 + kRoom);
}

TEST(BestLists, AreOfNoUseIfOneIsNot) {
    EXPECT_EQ(tokens_of({2, kRoom + 1}), (std::vector<Token>{7})) << "some are lost";
    EXPECT_EQ(tokens_of({kNoBest, 2}), (std::vector<Token>{7})) << "a logit is no number";
}

TEST(BestLists, CoverTheVocabulary) {
    for (const int n_vocab : {1, kBestPart, kBestPart + 1, 262144}) {
        EXPECT_GE(best_lists(n_vocab) * kBestPart, static_cast<std::size_t>(n_vocab));
        EXPECT_LT((best_lists(n_vocab) - 1) * kBestPart, static_cast<std::size_t>(n_vocab));
    }
}

}  // namespace
}  // namespace knap::test::best_lists_test
