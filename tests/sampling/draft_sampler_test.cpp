#include "sampling/draft_sampler.h"

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
#include "support/toy_language.h"

namespace knap::draft_sampler_test {
namespace {

using test::chi_square;
using test::chi_square_bound;
using test::dense;
using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kContext = 64;

SamplingOptions warm(std::uint64_t seed = 7) {
    SamplingOptions options;
    options.temperature = 0.8f;
    options.top_k = 0;
    options.top_p = 1.0f;
    options.min_p = 0.0f;
    options.seed = seed;
    return options;
}

std::vector<float> random_row(std::uint32_t seed, std::size_t n_vocab) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 2.0f);
    std::vector<float> logits(n_vocab);
    std::generate(logits.begin(), logits.end(), [&] { return normal(random); });
    return logits;
}

TEST(DraftSampler, GreedyGivesTheLargestInOrderLowestIdFirst) {
    Sampler sampler({}, 5, kContext);
    DraftSampler drafts(sampler, AcceptanceRule::shared_noise);
    const std::vector<float> row = {1.0f, 3.0f, 2.0f, 3.0f, 2.0f};
    EXPECT_THAT(drafts.choose(row, 0, 1).tokens, ElementsAre(1));
    EXPECT_THAT(drafts.choose(row, 0, 3).tokens, ElementsAre(1, 3, 2));
    EXPECT_THAT(drafts.choose(row, 0, 9).tokens, ElementsAre(1, 3, 2, 4, 0));
}

TEST(DraftSampler, GreedyLeavesForbiddenTokensOut) {
    Sampler sampler({}, 3, kContext);
    DraftSampler drafts(sampler, AcceptanceRule::shared_noise);
    EXPECT_THAT(drafts.choose(std::vector<float>{1.0f, -kInfinity, 2.0f}, 0, 3).tokens,
                ElementsAre(2, 0));
}

TEST(DraftSampler, BiasAndPenaltiesApply) {
    SamplingOptions options;
    options.presence_penalty = 5.0f;
    options.logit_bias = {{0, 2.5f}};
    Sampler sampler(options, 3, kContext);
    sampler.accept(2);
    DraftSampler drafts(sampler, AcceptanceRule::shared_noise);
    const std::vector<float> row = {1.0f, 3.0f, 4.0f};
    EXPECT_THAT(drafts.choose(row, 0, 1).tokens, ElementsAre(0));
    EXPECT_THAT(drafts.choose(row, 0, 3).tokens, ElementsAre(0, 1, 2));
}

TEST(DraftSampler, OnlyTheRatioRuleAboveTemperatureZeroDraws) {
    const std::vector<float> row = {1.0f, 2.0f, 3.0f};
    for (const auto rule :
         {AcceptanceRule::shared_noise, AcceptanceRule::ratio, AcceptanceRule::equality}) {
        Sampler greedy({}, 3, kContext);
        Sampler sampling(warm(), 3, kContext);
        EXPECT_FALSE(DraftSampler(greedy, rule).choose(row, 0, 2).is_drawn);
        EXPECT_EQ(DraftSampler(sampling, rule).choose(row, 0, 2).is_drawn,
                  rule == AcceptanceRule::ratio);
    }
}

TEST(DraftSampler, SharedNoiseDraftsTheTokenThatTheModelWouldChoose) {
    Sampler sampler(warm(), 50, kContext);
    DraftSampler drafts(sampler, AcceptanceRule::shared_noise);
    for (int position = 0; position < 200; ++position) {
        const auto row = random_row(static_cast<std::uint32_t>(position), 50);
        EXPECT_EQ(drafts.choose(row, position, 1).tokens.front(), sampler.sample(row, position));
    }
}

TEST(DraftSampler, SharedNoiseRanksByLogQPlusGumbel) {
    Sampler sampler(warm(3), 30, kContext);
    DraftSampler drafts(sampler, AcceptanceRule::shared_noise);
    for (int position = 0; position < 100; ++position) {
        const auto row = random_row(static_cast<std::uint32_t>(position), 30);
        std::vector<Token> expected(30);
        std::iota(expected.begin(), expected.end(), 0);
        const PositionNoise noise(3, position);
        const auto score = [&](Token v) { return row[v] / 0.8 + test::gumbel(noise, v); };
        std::sort(expected.begin(), expected.end(),
                  [&](Token a, Token b) { return score(a) > score(b); });
        expected.resize(6);
        ASSERT_EQ(drafts.choose(row, position, 6).tokens, expected);
    }
}

// With the whole model's noise the draft would always equal its draw. With independent noise they
// agree with probability sum p^2.
TEST(DraftSampler, OtherRulesDraftWithIndependentNoise) {
    const std::vector<float> row = {0.0f, 0.4f, 0.8f, 0.2f};
    for (const auto rule : {AcceptanceRule::ratio, AcceptanceRule::equality}) {
        Sampler sampler(warm(), 4, kContext);
        DraftSampler drafts(sampler, rule);
        constexpr int kDraws = 40'000;
        int n_agreed = 0;
        for (int position = 0; position < kDraws; ++position) {
            const Token draft = drafts.choose(row, position, 1).tokens.front();
            n_agreed += draft == sampler.sample(row, position) ? 1 : 0;
        }
        Distribution p;
        sampler.distribution(row, p);
        double expected = 0.0;
        for (const double probability : p.probabilities) {
            expected += probability * probability;
        }
        EXPECT_NEAR(n_agreed / double{kDraws}, expected, 4 * 0.5 / std::sqrt(kDraws));
    }
}

TEST(DraftSampler, RatioDrawsWithoutReplacement) {
    const std::vector<float> row = {0.0f, 0.6f, 1.2f};
    Sampler sampler(warm(), 3, kContext);
    DraftSampler drafts(sampler, AcceptanceRule::ratio);
    std::vector<int> counts(9);  // of pairs (first, second)
    for (int position = 0; position < 40'000; ++position) {
        const auto& tokens = drafts.choose(row, position, 2).tokens;
        ASSERT_EQ(tokens.size(), 2u);
        ++counts[tokens[0] * 3 + tokens[1]];
    }
    Distribution q;
    sampler.distribution(row, q);
    const std::vector<double> one = dense(q, 3);
    std::vector<double> expected(9);
    for (int i = 0; i < 9; ++i) {
        const int first = i / 3;
        const int second = i % 3;
        expected[i] = first == second ? 0.0 : one[first] * one[second] / (1.0 - one[first]);
    }
    EXPECT_LT(chi_square(counts, expected), chi_square_bound(expected));
}

TEST(DraftSampler, GivesFewerWhenFewerCanBeDrawn) {
    SamplingOptions options = warm();
    options.top_k = 2;
    Sampler sampler(options, 4, kContext);
    for (const auto rule :
         {AcceptanceRule::shared_noise, AcceptanceRule::ratio, AcceptanceRule::equality}) {
        DraftSampler drafts(sampler, rule);
        const auto& tokens = drafts.choose(std::vector<float>{0.0f, 3.0f, 2.9f, 0.5f}, 1, 4).tokens;
        EXPECT_THAT(tokens, ::testing::UnorderedElementsAre(1, 2));
    }
}

// A reduced head leaves most of a row at -infinity.
TEST(DraftSampler, HandlesRowsOfAReducedHead) {
    constexpr int kVocab = 700;
    const std::vector<Token> held = {0, 1, 2, 64, 200, 201, 699};
    SamplingOptions cut = warm();  // keeps more tokens than the row has
    cut.top_k = 40;
    cut.top_p = 0.95f;
    cut.min_p = 0.05f;
    SamplingOptions penalised = cut;
    penalised.repeat_penalty = 1.5f;
    penalised.presence_penalty = 0.3f;
    penalised.logit_bias = {{1, 2.0f}, {5, 9.0f}, {200, -kInfinity}};
    for (const SamplingOptions& options : {SamplingOptions{}, warm(), cut, penalised}) {
        for (const AcceptanceRule rule : {AcceptanceRule::shared_noise, AcceptanceRule::ratio}) {
            for (std::uint32_t seed = 0; seed < 20; ++seed) {
                Sampler sampler(options, kVocab, kContext);
                sampler.accept(64);
                sampler.accept(5);
                const auto logits = random_row(seed, kVocab);
                std::vector<float> row(kVocab, -kInfinity);
                for (const Token token : held) {
                    row[token] = logits[token];
                }
                DraftSampler drafts(sampler, rule);
                const DraftChoice& choice = drafts.choose(row, 3, 16);
                ASSERT_FALSE(choice.tokens.empty());
                EXPECT_LE(choice.tokens.size(), held.size());
                EXPECT_THAT(held, ::testing::IsSupersetOf(choice.tokens));
                const float sure = confidence(row, choice.tokens.front());
                EXPECT_TRUE(sure > 0 && sure <= 1) << sure;
                if (choice.is_drawn) {
                    EXPECT_THAT(held, ::testing::IsSupersetOf(choice.q.tokens));
                    const auto& q = choice.q.probabilities;
                    EXPECT_NEAR(std::accumulate(q.begin(), q.end(), 0.0), 1.0, 1e-6);
                }
            }
        }
    }
}

TEST(DraftSampler, DraftsOfASeedAreReproducible) {
    Sampler sampler(warm(), 50, kContext);
    DraftSampler first(sampler, AcceptanceRule::ratio);
    DraftSampler second(sampler, AcceptanceRule::ratio);
    const auto row = random_row(1, 50);
    for (const int position : {4, 5, 6, 5, 6, 7, 9}) {
        EXPECT_EQ(first.choose(row, position, 3).tokens, second.choose(row, position, 3).tokens);
    }
}

TEST(DraftSampler, RowsThatCannotBeSampledAreErrors) {
    const std::vector<float> row = {1.0f, std::numeric_limits<float>::quiet_NaN()};
    Sampler greedy({}, 2, kContext);
    Sampler sampling(warm(), 2, kContext);
    EXPECT_THROW(DraftSampler(greedy, AcceptanceRule::ratio).choose(row, 0, 1), Error);
    EXPECT_THROW(DraftSampler(greedy, AcceptanceRule::ratio).choose(row, 0, 2), Error);
    EXPECT_THROW(DraftSampler(sampling, AcceptanceRule::ratio).choose(row, 0, 1), Error);
    EXPECT_THROW(confidence(row, 0), Error);
}

double softmax_of(const std::vector<float>& logits, Token token) {
    const double maximum = *std::max_element(logits.begin(), logits.end());
    double total = 0.0;
    for (const double logit : logits) {
        total += std::exp(logit - maximum);
    }
    return std::exp(logits[token] - maximum) / total;
}

TEST(Confidence, IsTheSoftmaxOfTheRow) {
    for (const std::size_t n_vocab : {1u, 2u, 15u, 16u, 17u, 1000u, 1024u, 1025u, 49'152u}) {
        std::vector<float> row = random_row(static_cast<std::uint32_t>(n_vocab), n_vocab);
        for (std::size_t i = 0; i < n_vocab; i += 1 + n_vocab / 20) {
            const auto token = static_cast<Token>(i);
            const double expected = softmax_of(row, token);
            EXPECT_NEAR(confidence(row, token), expected, 1e-5 * expected) << n_vocab;
        }
    }
}

TEST(Confidence, IgnoresForbiddenTokens) {
    std::vector<float> row(50000, -kInfinity);
    row[7] = -50.0f;
    row[40000] = -50.0f;
    EXPECT_NEAR(confidence(row, 7), 0.5f, 1e-5f);
    row[7] = -kInfinity;
    EXPECT_NEAR(confidence(row, 40000), 1.0f, 1e-5f);
}

TEST(Confidence, IsAtMostOne) {
    for (int i = 0; i < 1000; ++i) {
        const std::vector<float> row = {static_cast<float>(i) * 0.013f, -kInfinity, -100.0f};
        EXPECT_LE(confidence(row, 0), 1.0f);
        EXPECT_GT(confidence(row, 0), 0.99999f);
        EXPECT_LT(confidence(row, 1), 1e-30f);
    }
}

TEST(Confidence, IsOfTheDraftedTheMostProbableOrTheDrawnToken) {
    const std::vector<float> row = {0.0f, 1.0f, 2.0f};
    const DraftChoice drawn{.tokens = {1, 2},
                            .q = {.tokens = {2, 1}, .probabilities = {0.6f, 0.4f}}};
    EXPECT_EQ(confidence(row, drawn, ConfidenceOf::drafted), confidence(row, 1));
    EXPECT_EQ(confidence(row, drawn, ConfidenceOf::most_probable), confidence(row, 2));
    EXPECT_EQ(confidence(row, drawn, ConfidenceOf::drawn), 0.4f);
    const DraftChoice greedy{.tokens = {1}};
    EXPECT_EQ(confidence(row, greedy, ConfidenceOf::drawn), confidence(row, 1));
}

TEST(Confidence, OfADrawnTokenIsItsProbabilityAfterTheTransform) {
    const std::vector<float> row = random_row(3, 50);
    SamplingOptions options = warm();
    options.top_k = 2;
    Sampler sampler(options, 50, kContext);
    DraftSampler drafts(sampler, AcceptanceRule::shared_noise);
    const DraftChoice& choice = drafts.choose(row, 0, 1);
    Distribution q;
    sampler.distribution(row, q);
    ASSERT_EQ(q.tokens.size(), 2u);
    const bool is_first = choice.tokens.front() == q.tokens.front();
    EXPECT_EQ(confidence(row, choice, ConfidenceOf::drawn), q.probabilities[is_first ? 0 : 1]);
}

}  // namespace
}  // namespace knap::draft_sampler_test
