#include "sampling/penalties.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace knap::penalties_test {
namespace {

constexpr int kVocab = 12;

// The definition: count the tokens in the window, then change the logit of each.
std::vector<float> naive(const std::vector<Token>& history,
                         std::size_t window,
                         const Penalties& penalties,
                         std::vector<float> logits) {
    std::map<Token, int> counts;
    const std::size_t n_seen = std::min(window, history.size());
    for (std::size_t i = history.size() - n_seen; i < history.size(); ++i) {
        ++counts[history[i]];
    }
    for (const auto& [token, count] : counts) {
        float& logit = logits[token];
        if (logit <= 0) {
            logit *= penalties.repeat;
        } else {
            logit /= penalties.repeat;
        }
        logit -= static_cast<float>(count) * penalties.frequency + penalties.presence;
    }
    return logits;
}

std::vector<float> some_logits() {
    std::vector<float> logits(kVocab);
    for (int i = 0; i < kVocab; ++i) {
        logits[i] = static_cast<float>(i) - 5.5f;
    }
    return logits;
}

constexpr Penalties kAll{.repeat = 1.3f, .frequency = 0.25f, .presence = 0.7f};

void expect_window(const PenaltyWindow& window,
                   const std::vector<Token>& history,
                   std::size_t size) {
    std::vector<float> logits = some_logits();
    window.apply(kAll, logits);
    ASSERT_EQ(logits, naive(history, size, kAll, some_logits()));
}

TEST(Penalties, HandComputed) {
    PenaltyWindow window(4, 3);
    for (Token token : {2, 0, 0, 1}) {
        window.push(token);
    }
    std::vector<float> logits = {4.0f, -4.0f, 0.0f};
    window.apply({.repeat = 2.0f, .frequency = 0.5f, .presence = 0.25f}, logits);
    EXPECT_EQ(logits,
              (std::vector<float>{4.0f / 2 - 2 * 0.5f - 0.25f, -4.0f * 2 - 0.5f - 0.25f, -0.75f}));
}

TEST(Penalties, WindowForgetsOldTokens) {
    PenaltyWindow window(2, 3);
    for (Token token : {0, 1, 2}) {
        window.push(token);
    }
    std::vector<float> logits(3, 1.0f);
    window.apply({.presence = 1.0f}, logits);
    EXPECT_EQ(logits, (std::vector<float>{1.0f, 0.0f, 0.0f}));
}

TEST(Penalties, AgreeWithTheDefinitionThroughPushesAndPops) {
    std::mt19937 random(11);
    for (std::size_t size : {0, 1, 2, 3, 7, 40}) {
        PenaltyWindow window(size, kVocab);
        std::vector<Token> history;
        for (int step = 0; step < 3000; ++step) {
            if (random() % 5 < 3) {
                history.push_back(static_cast<Token>(random() % kVocab));
                window.push(history.back());
            } else {
                const std::size_t n_back = std::min<std::size_t>(random() % 4, history.size());
                history.resize(history.size() - n_back);
                window.pop(n_back);
            }
            expect_window(window, history, size);
        }
        window.pop(history.size());
        expect_window(window, {}, size);
        EXPECT_DEATH(window.pop(), "only pushed tokens") << "the whole history is gone";
        window.push(4);
        expect_window(window, {4}, size);
    }
}

TEST(Penalties, ForbiddenTokensStayForbidden) {
    PenaltyWindow window(4, 2);
    window.push(0);
    std::vector<float> logits = {-std::numeric_limits<float>::infinity(), 1.0f};
    window.apply(kAll, logits);
    EXPECT_EQ(logits[0], -std::numeric_limits<float>::infinity());
}

TEST(Penalties, NeutralValuesAreInactive) {
    EXPECT_FALSE(Penalties{}.are_active());
    EXPECT_TRUE(Penalties{.repeat = 1.1f}.are_active());
    EXPECT_TRUE(Penalties{.frequency = -0.1f}.are_active());
    EXPECT_TRUE(Penalties{.presence = 0.1f}.are_active());
}

TEST(LogitBias, IsAddedAndAddsUp) {
    std::vector<float> logits = {1.0f, 2.0f, 3.0f};
    const std::vector<std::pair<Token, float>> bias = {{0, 0.5f}, {2, -1.0f}, {0, 0.25f}};
    apply_bias(bias, logits);
    EXPECT_EQ(logits, (std::vector<float>{1.75f, 2.0f, 2.0f}));
}

}  // namespace
}  // namespace knap::penalties_test
