#include "sampling/logprobs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::logprobs_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The definition, in a type with digits to spare: x - log(sum of exp(x)).
std::vector<float> naive_log_softmax(const std::vector<float>& logits) {
    long double total = 0;
    for (const float logit : logits) {
        total += std::exp(static_cast<long double>(logit));
    }
    std::vector<float> logprobs;
    for (const float logit : logits) {
        logprobs.push_back(static_cast<float>(logit - std::log(total)));
    }
    return logprobs;
}

// The tokens in the order of a list of all tokens.
std::vector<Token> naive_order(const std::vector<float>& logits) {
    std::vector<Token> tokens(logits.size());
    std::iota(tokens.begin(), tokens.end(), 0);
    std::stable_sort(tokens.begin(), tokens.end(), [&](Token a, Token b) {
        return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    return tokens;
}

std::vector<float> random_row(std::mt19937& random, std::size_t length, bool has_ties) {
    std::normal_distribution<float> normal(0.0f, 5.0f);
    std::vector<float> logits(length);
    for (float& logit : logits) {
        logit = has_ties ? std::floor(normal(random)) : normal(random);
    }
    return logits;
}

TEST(Logprobs, AreTheNaiveLogSoftmaxOnRandomRows) {
    std::mt19937 random(17);
    for (int round = 0; round < 300; ++round) {
        const auto logits = random_row(random, 1 + random() % 3000, round % 2 == 1);
        const std::size_t n_top = random() % (kMaxLogprobs + 1);
        const auto token = static_cast<Token>(random() % logits.size());
        const std::vector<float> expected = naive_log_softmax(logits);
        const std::vector<Token> order = naive_order(logits);

        Logprobs logprobs(n_top);
        const RowLogprobs found = logprobs.of(logits, token);
        ASSERT_FLOAT_EQ(found.logprob, expected[static_cast<std::size_t>(token)]);
        ASSERT_EQ(found.top.size(), std::min(logits.size(), n_top));
        for (std::size_t i = 0; i < found.top.size(); ++i) {
            ASSERT_EQ(found.top[i].token, order[i]) << "at rank " << i << " of " << n_top;
            ASSERT_FLOAT_EQ(found.top[i].logprob, expected[static_cast<std::size_t>(order[i])]);
        }
    }
}

TEST(Logprobs, TheLowestIdWinsATie) {
    std::vector<float> logits(1000, 0.0f);
    logits[700] = 1.0f;
    Logprobs logprobs(3);
    const RowLogprobs found = logprobs.of(logits, 5);
    ASSERT_EQ(found.top.size(), 3u);
    EXPECT_EQ(found.top[0].token, 700);
    EXPECT_EQ(found.top[1].token, 0);
    EXPECT_EQ(found.top[2].token, 1);
}

// A token has the same bits alone and in the list, whatever the length of the list.
TEST(Logprobs, DoNotDependOnWhatElseIsAskedFor) {
    std::mt19937 random(3);
    const auto logits = random_row(random, 500, false);
    Logprobs all(kMaxLogprobs);
    Logprobs none(0);
    const RowLogprobs found = all.of(logits, 0);
    for (const TokenLogprob& entry : found.top) {
        const RowLogprobs alone = none.of(logits, entry.token);
        EXPECT_TRUE(alone.top.empty());
        EXPECT_EQ(std::bit_cast<std::uint32_t>(alone.logprob),
                  std::bit_cast<std::uint32_t>(entry.logprob));
    }
}

TEST(Logprobs, KeepTheirDigitsWhereExponentialsWouldNot) {
    Logprobs logprobs(2);
    // exp(1e4) overflows, and exp(-1e4) vanishes.
    EXPECT_FLOAT_EQ(logprobs.of(std::vector<float>{1e4f, 1e4f}, 0).logprob, -std::log(2.0f));
    EXPECT_FLOAT_EQ(logprobs.of(std::vector<float>{-1e4f, -1e4f}, 1).logprob, -std::log(2.0f));
    // Far from the maximum a float has no probability left, but a log-probability.
    const RowLogprobs far = logprobs.of(std::vector<float>{0.0f, -500.0f}, 1);
    EXPECT_EQ(far.logprob, -500.0f);
    EXPECT_EQ(far.top[0].logprob, 0.0f);
    // Close to certain: log(1 / (1 + e)) is about -e.
    EXPECT_FLOAT_EQ(logprobs.of(std::vector<float>{0.0f, -20.0f}, 0).logprob, -std::exp(-20.0f));
}

TEST(Logprobs, ASmallVocabularyHasAShorterList) {
    Logprobs logprobs(kMaxLogprobs);
    EXPECT_EQ(logprobs.of(std::vector<float>{1.0f, 2.0f, 3.0f}, 0).top.size(), 3u);
    EXPECT_EQ(logprobs.of(std::vector<float>{7.0f}, 0).logprob, 0.0f);
}

TEST(Logprobs, ImpossibleTokensAreNotListed) {
    Logprobs logprobs(3);
    const RowLogprobs found = logprobs.of(std::vector<float>{-kInfinity, 1.0f, -kInfinity}, 0);
    EXPECT_EQ(found.logprob, -kInfinity);
    ASSERT_EQ(found.top.size(), 1u);
    EXPECT_EQ(found.top[0].token, 1);
    EXPECT_EQ(found.top[0].logprob, 0.0f);
}

TEST(Logprobs, ADamagedRowIsAnError) {
    Logprobs logprobs(1);
    EXPECT_THROW(logprobs.of(std::vector<float>{0.0f, std::nanf("")}, 0), Error);
    EXPECT_THROW(logprobs.of(std::vector<float>{0.0f, kInfinity}, 0), Error);
}

}  // namespace
}  // namespace knap::logprobs_test
