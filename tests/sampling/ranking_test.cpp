#include "sampling/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace knap::ranking_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(RankKey, KeepsLogitAndToken) {
    for (float logit : {0.0f, 1.5f, -1.5f, 3e38f, -3e38f, 1e-45f, -1e-45f}) {
        const RankKey key = rank_key(logit, 123'456);
        EXPECT_EQ(logit_of(key), logit);
        EXPECT_EQ(token_of(key), 123'456);
    }
}

TEST(RankKey, OrdersByLogitThenById) {
    const float logits[] = {kInfinity, 2.0f, 1e-45f, 0.0f, -1e-45f, -2.0f, -kInfinity};
    for (std::size_t i = 0; i + 1 < std::size(logits); ++i) {
        EXPECT_LT(rank_key(logits[i], 9), rank_key(logits[i + 1], 3));
        EXPECT_LT(rank_key(logits[i], 3), rank_key(logits[i], 9));
    }
    EXPECT_LT(rank_key(-0.0f, 3), rank_key(0.0f, 4));
}

enum class Shape { random, tied, ascending, descending, equal, sparse };

class RankingTest : public ::testing::TestWithParam<Shape> {
  protected:
    static std::vector<float> row(Shape shape, std::size_t length) {
        std::mt19937 random(5);
        std::normal_distribution<float> normal;
        std::vector<float> logits(length);
        for (std::size_t i = 0; i < length; ++i) {
            logits[i] = shape == Shape::random       ? normal(random)
                        : shape == Shape::tied       ? std::floor(normal(random))
                        : shape == Shape::ascending  ? static_cast<float>(i)
                        : shape == Shape::descending ? -static_cast<float>(i)
                        : shape == Shape::equal      ? 1.0f
                        : random() % 3 == 0          ? normal(random)
                                                     : -kInfinity;
        }
        return logits;
    }

    static std::vector<Token> sorted_tokens(Ranking& ranking) {
        ranking.sort();
        std::vector<Token> tokens;
        for (RankKey key : ranking.keys()) {
            tokens.push_back(token_of(key));
        }
        return tokens;
    }

    // The definition: sort everything, then cut below the n-th logit.
    static std::vector<Token> naive(const std::vector<float>& logits, std::size_t n) {
        std::vector<Token> tokens;
        for (std::size_t i = 0; i < logits.size(); ++i) {
            if (logits[i] > -kInfinity) {
                tokens.push_back(static_cast<Token>(i));
            }
        }
        std::stable_sort(tokens.begin(), tokens.end(),
                         [&](Token a, Token b) { return logits[a] > logits[b]; });
        if (n > 0 && n < tokens.size()) {
            const float smallest = logits[tokens[n - 1]];
            std::erase_if(tokens, [&](Token token) { return logits[token] < smallest; });
        }
        return tokens;
    }
};

TEST_P(RankingTest, TakesTheLargestAndTheirTies) {
    Ranking ranking;
    for (std::size_t length : {1, 63, 64, 65, 1000, 20'000}) {
        const std::vector<float> logits = row(GetParam(), length);
        for (std::size_t n : {1, 2, 40, 64, 700, 19'999}) {
            ranking.take_largest(logits, n);
            ASSERT_EQ(sorted_tokens(ranking), naive(logits, n)) << length << " " << n;
        }
    }
}

TEST_P(RankingTest, SortsEverything) {
    Ranking ranking;
    for (std::size_t length : {1, 2047, 2048, 70'000}) {
        const std::vector<float> logits = row(GetParam(), length);
        ranking.take_all(logits);
        ASSERT_EQ(sorted_tokens(ranking), naive(logits, 0)) << length;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         RankingTest,
                         ::testing::Values(Shape::random,
                                           Shape::tied,
                                           Shape::ascending,
                                           Shape::descending,
                                           Shape::equal,
                                           Shape::sparse));

}  // namespace
}  // namespace knap::ranking_test
