#include "sampling/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/gumbel.h"

namespace knap::distribution_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// No truncation, so that each test enables only the one it is about.
SamplingOptions plain(float temperature = 1.0f) {
    SamplingOptions options;
    options.temperature = temperature;
    options.top_k = 0;
    options.top_p = 1.0f;
    options.min_p = 0.0f;
    return options;
}

// Logits whose softmax is `probabilities`.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
    std::vector<float> logits;
    logits.reserve(probabilities.size());
    for (double probability : probabilities) {
        logits.push_back(static_cast<float>(std::log(probability)));
    }
    return logits;
}

Distribution transform(const SamplingOptions& options, const std::vector<float>& logits) {
    Distribution distribution;
    SamplingTransform(options).apply(logits, distribution);
    return distribution;
}

auto near(const std::vector<float>& values) {
    std::vector<::testing::Matcher<float>> matchers;
    matchers.reserve(values.size());
    for (float value : values) {
        matchers.push_back(FloatNear(value, 1e-6f));
    }
    return ::testing::ElementsAreArray(matchers);
}

TEST(SamplingTransform, IsSoftmaxWhenNothingIsCut) {
    const auto result = transform(plain(), logits_of({0.1, 0.6, 0.3}));
    EXPECT_THAT(result.tokens, ElementsAre(1, 2, 0));
    EXPECT_THAT(result.probabilities, near({0.6f, 0.3f, 0.1f}));
}

TEST(SamplingTransform, TemperatureDividesLogits) {
    // p^(1/T) with T = 0.5: 0.36, 0.09, 0.01 over 0.46.
    const auto result = transform(plain(0.5f), logits_of({0.1, 0.6, 0.3}));
    EXPECT_THAT(result.probabilities, near({0.36f / 0.46f, 0.09f / 0.46f, 0.01f / 0.46f}));
}

TEST(SamplingTransform, ExtremeTemperaturesStayFinite) {
    const auto cold = transform(plain(1e-40f), {1.0f, 2.0f, 0.0f});
    EXPECT_THAT(cold.tokens, ElementsAre(1));
    EXPECT_THAT(cold.probabilities, ElementsAre(1.0f));
    const auto hot = transform(plain(1e38f), {1.0f, 2.0f});
    EXPECT_THAT(hot.probabilities, near({0.5f, 0.5f}));
}

TEST(SamplingTransform, TopKKeepsTheLargest) {
    SamplingOptions options = plain();
    options.top_k = 2;
    const auto result = transform(options, logits_of({0.1, 0.6, 0.3}));
    EXPECT_THAT(result.tokens, ElementsAre(1, 2));
    EXPECT_THAT(result.probabilities, near({2.0f / 3, 1.0f / 3}));
}

TEST(SamplingTransform, TiesAtTheKthStay) {
    SamplingOptions options = plain();
    options.top_k = 2;
    const auto result = transform(options, {1.0f, 3.0f, 1.0f, 0.5f, 1.0f});
    EXPECT_THAT(result.tokens, ElementsAre(1, 0, 2, 4));
}

TEST(SamplingTransform, TopKBeyondTheVocabularyKeepsAll) {
    SamplingOptions options = plain();
    options.top_k = 1000;
    EXPECT_EQ(transform(options, {1.0f, 2.0f}).tokens.size(), 2u);
}

TEST(SamplingTransform, TopPKeepsTheTokenThatCrosses) {
    SamplingOptions options = plain();
    options.top_p = 0.7f;  // 0.5 is above 0.3, and 0.5 < 0.7: kept; 0.8 is above 0.15: dropped
    const auto result = transform(options, logits_of({0.3, 0.05, 0.5, 0.15}));
    EXPECT_THAT(result.tokens, ElementsAre(2, 0));
    EXPECT_THAT(result.probabilities, near({0.5f / 0.8f, 0.3f / 0.8f}));
}

TEST(SamplingTransform, TopPDropsWhenTheMassAboveReachesIt) {
    SamplingOptions options = plain();
    options.top_p = 0.5f;  // exactly reached by the first of two equals
    EXPECT_THAT(transform(options, {0.0f, 0.0f}).tokens, ElementsAre(0));
    options.top_p = 0.50001f;
    EXPECT_THAT(transform(options, {0.0f, 0.0f}).tokens, ElementsAre(0, 1));
}

TEST(SamplingTransform, TopPKeepsAtLeastOne) {
    SamplingOptions options = plain();
    options.top_p = 1e-9f;
    EXPECT_THAT(transform(options, logits_of({0.4, 0.6})).tokens, ElementsAre(1));
}

TEST(SamplingTransform, TopPMeasuresWhatTopKLeft) {
    SamplingOptions options = plain();
    options.top_k = 2;
    options.top_p = 0.6f;  // of (0.4, 0.3) renormalised the first has 0.57, of all four 0.4
    EXPECT_THAT(transform(options, logits_of({0.4, 0.3, 0.2, 0.1})).tokens, ElementsAre(0, 1));
    options.top_p = 0.5f;
    EXPECT_THAT(transform(options, logits_of({0.4, 0.3, 0.2, 0.1})).tokens, ElementsAre(0));
}

TEST(SamplingTransform, MinPIsRelativeToTheMostProbable) {
    SamplingOptions options = plain();
    options.min_p = 0.5f;
    EXPECT_THAT(transform(options, logits_of({0.4, 0.19, 0.21, 0.2001})).tokens,
                ElementsAre(0, 2, 3));
    options.min_p = 1.0f;
    EXPECT_THAT(transform(options, {1.0f, 2.0f, 2.0f}).tokens, ElementsAre(1, 2));
}

TEST(SamplingTransform, MinPDoesNotChangeWhatTopPMeasures) {
    SamplingOptions options = plain();
    options.min_p = 0.3f;  // leaves 0.5 and 0.2
    // Of the whole mass, 0.5 < 0.6 keeps the second token. Of what min-p leaves, it would be
    // dropped.
    options.top_p = 0.6f;
    EXPECT_THAT(transform(options, logits_of({0.5, 0.2, 0.15, 0.15})).tokens, ElementsAre(0, 1));
}

TEST(SamplingTransform, EqualProbabilitiesAreOrderedById) {
    EXPECT_THAT(transform(plain(), {1.0f, 2.0f, 1.0f, 2.0f}).tokens, ElementsAre(1, 3, 0, 2));
}

TEST(SamplingTransform, ForbiddenTokensAreAbsent) {
    EXPECT_THAT(transform(plain(), {-kInfinity, 1.0f, -kInfinity}).tokens, ElementsAre(1));
    EXPECT_THROW(transform(plain(), {-kInfinity, -kInfinity}), Error);
    EXPECT_THROW(transform(plain(), {0.0f, std::numeric_limits<float>::quiet_NaN()}), Error);
}

// The definition, step by step and without shortcuts.
Distribution naive(const SamplingOptions& options, const std::vector<float>& logits) {
    std::vector<Token> tokens(logits.size());
    std::iota(tokens.begin(), tokens.end(), 0);
    std::stable_sort(tokens.begin(), tokens.end(),
                     [&](Token a, Token b) { return logits[a] > logits[b]; });
    if (options.top_k > 0 && options.top_k < static_cast<int>(tokens.size())) {
        const float smallest = logits[tokens[options.top_k - 1]];
        std::erase_if(tokens, [&](Token token) { return logits[token] < smallest; });
    }
    const auto softmax = [&] {
        std::vector<double> p;
        p.reserve(tokens.size());
        for (Token token : tokens) {
            p.push_back(
                std::exp((double{logits[token]} - logits[tokens[0]]) / options.temperature));
        }
        const double sum = std::accumulate(p.begin(), p.end(), 0.0);
        for (double& value : p) {
            value /= sum;
        }
        return p;
    };
    auto p = softmax();
    double above = 0.0;
    std::size_t n_kept = 0;
    while (n_kept < p.size() && (options.top_p >= 1.0f || above < options.top_p)) {
        above += p[n_kept++];
    }
    tokens.resize(n_kept);
    p = softmax();
    while (p[tokens.size() - 1] < options.min_p * p[0]) {
        tokens.pop_back();
    }
    p = softmax();
    return {tokens, {p.begin(), p.end()}};
}

TEST(SamplingTransform, AgreesWithTheDefinitionOnRandomRows) {
    std::mt19937 random(17);
    std::normal_distribution<float> normal(0.0f, 3.0f);
    for (int round = 0; round < 400; ++round) {
        std::vector<float> logits(1 + random() % 3000);
        for (float& logit : logits) {
            logit = normal(random);
        }
        SamplingOptions options = plain(0.3f + 0.1f * static_cast<float>(random() % 20));
        options.top_k = round % 2 == 0 ? static_cast<int>(random() % 200) : 0;
        options.top_p =
            random() % 2 == 0 ? 1.0f : 0.05f + 0.01f * static_cast<float>(random() % 90);
        options.min_p = random() % 2 == 0 ? 0.0f : 0.01f * static_cast<float>(random() % 30);
        const Distribution expected = naive(options, logits);
        const Distribution found = transform(options, logits);
        ASSERT_EQ(found.tokens, expected.tokens);
        for (std::size_t i = 0; i < expected.tokens.size(); ++i) {
            ASSERT_NEAR(found.probabilities[i], expected.probabilities[i], 1e-6);
        }
    }
}

TEST(SamplingTransform, ReusesMemory) {
    SamplingTransform made(plain());
    Distribution distribution;
    made.apply(std::vector<float>(5000, 1.0f), distribution);
    const float* memory = distribution.probabilities.data();
    made.apply(std::vector<float>(4000, 2.0f), distribution);
    EXPECT_EQ(distribution.probabilities.data(), memory);
    EXPECT_EQ(distribution.tokens.size(), 4000u);
}

// The argmax over v of log p(v) + G(v) (docs/methods.md, "Shared noise").
Token draw_by_definition(const Distribution& distribution, const PositionNoise& noise) {
    Token chosen = -1;
    double best = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < distribution.tokens.size(); ++i) {
        const double score = std::log(double{distribution.probabilities[i]}) +
                             test::gumbel(noise, distribution.tokens[i]);
        if (score > best) {
            best = score;
            chosen = distribution.tokens[i];
        }
    }
    return chosen;
}

TEST(Draw, IsTheArgmaxOfLogProbabilityPlusGumbelNoise) {
    std::mt19937 random(23);
    std::normal_distribution<float> normal;
    for (int round = 0; round < 500; ++round) {
        std::vector<float> logits(1 + random() % 2000);
        for (float& logit : logits) {
            logit = normal(random) * 4.0f;
        }
        const Distribution distribution = transform(plain(), logits);
        const PositionNoise noise(9, round);
        ASSERT_EQ(draw(distribution, noise), draw_by_definition(distribution, noise));
    }
}

TEST(Draw, FrequenciesMatchTheProbabilities) {
    const std::vector<double> probabilities = {0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.015, 0.005};
    const Distribution distribution = transform(plain(), logits_of(probabilities));
    constexpr int kDraws = 200'000;
    for (std::uint64_t seed : {1, 2, 3}) {
        std::vector<int> counts(probabilities.size());
        for (int position = 0; position < kDraws; ++position) {
            ++counts[draw(distribution, PositionNoise(seed, position))];
        }
        double chi_square = 0.0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const double expected = probabilities[i] * kDraws;
            chi_square += std::pow(counts[i] - expected, 2) / expected;
        }
        EXPECT_LT(chi_square, 24.3);  // 7 degrees of freedom, 1 in 1000
    }
}

TEST(Draw, WeightsNeedNotSumToOne) {
    const Distribution distribution = transform(plain(), logits_of({0.5, 0.3, 0.2}));
    const std::vector<double> weights = {5.0, 3.0, 2.0};  // tokens are 0, 1, 2
    for (int position = 0; position < 1000; ++position) {
        const PositionNoise noise(3, position);
        ASSERT_EQ(draw(distribution.tokens, weights, noise), draw(distribution, noise));
    }
}

TEST(Draw, SeveralAreTheBestByLogProbabilityPlusGumbel) {
    std::mt19937 random(5);
    std::uniform_int_distribution<std::size_t> size(1, 12);
    std::vector<Draw> draws;
    for (int round = 0; round < 500; ++round) {
        std::vector<float> logits(size(random));
        std::normal_distribution<float> normal(0.0f, 2.0f);
        std::generate(logits.begin(), logits.end(), [&] { return normal(random); });
        const Distribution distribution = transform(plain(), logits);
        const PositionNoise noise(9, round);
        const auto score = [&](Token token) { return logits[token] + test::gumbel(noise, token); };
        std::vector<Token> expected = distribution.tokens;
        std::sort(expected.begin(), expected.end(),
                  [&](Token a, Token b) { return score(a) > score(b); });
        const std::size_t n = size(random);
        expected.resize(std::min(n, expected.size()));
        draw_several(distribution, noise, n, draws);
        ASSERT_EQ(draws.size(), expected.size());
        for (std::size_t i = 0; i < draws.size(); ++i) {
            ASSERT_EQ(draws[i].token, expected[i]);
            // Up to the constant that turns logits into log probabilities.
            ASSERT_NEAR(std::log(draws[i].ratio / draws[0].ratio),
                        score(expected[i]) - score(expected[0]), 1e-5);
        }
        ASSERT_EQ(draws[0].token, draw(distribution, noise));
    }
}

TEST(Draw, SeveralLeaveOutImpossibleTokens) {
    const Distribution distribution = {.tokens = {4, 2, 3}, .probabilities = {0.75f, 0.25f, 0.0f}};
    std::vector<Draw> draws;
    draw_several(distribution, PositionNoise(1, 1), 3, draws);
    EXPECT_EQ(draws.size(), 2u);
}

TEST(Draw, PositionsAreIndependent) {
    const Distribution distribution = transform(plain(), {0.0f, 0.0f});
    constexpr int kDraws = 100'000;
    int n_equal = 0;
    for (int position = 0; position < kDraws; ++position) {
        n_equal += draw(distribution, PositionNoise(4, position)) ==
                   draw(distribution, PositionNoise(4, position + 1));
    }
    EXPECT_NEAR(n_equal, kDraws / 2.0, 4 * std::sqrt(kDraws) / 2);
}

// The rate at which two distributions draw the same token from shared noise (docs/methods.md,
// "Shared noise").
TEST(Draw, SharedNoiseAgreesAtThePredictedRate) {
    const std::vector<double> p = {0.5, 0.3, 0.2};
    const std::vector<double> q = {0.2, 0.2, 0.6};
    double rate = 0.0;
    for (int i = 0; i < 3; ++i) {
        double sum = 0.0;
        for (int j = 0; j < 3; ++j) {
            sum += std::max(p[j] / p[i], q[j] / q[i]);
        }
        rate += 1.0 / sum;
    }
    const Distribution target = transform(plain(), logits_of(p));
    const Distribution draft = transform(plain(), logits_of(q));
    constexpr int kDraws = 200'000;
    int n_equal = 0;
    for (int position = 0; position < kDraws; ++position) {
        const PositionNoise noise(6, position);
        n_equal += draw(target, noise) == draw(draft, noise);
    }
    EXPECT_NEAR(static_cast<double>(n_equal) / kDraws, rate,
                4 * std::sqrt(rate * (1 - rate) / kDraws));
}

}  // namespace
}  // namespace knap::distribution_test
