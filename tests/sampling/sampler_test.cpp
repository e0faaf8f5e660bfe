#include "sampling/sampler.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::sampler_test {
namespace {

using ::testing::ElementsAre;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kContext = 128;

SamplingOptions warm() {
    SamplingOptions options;
    options.temperature = 0.8f;
    options.seed = 7;
    return options;
}

std::vector<float> random_row(std::uint32_t seed, std::size_t n_vocab = 500) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 2.0f);
    std::vector<float> logits(n_vocab);
    for (float& logit : logits) {
        logit = normal(random);
    }
    return logits;
}

TEST(Sampler, IsGreedyByDefault) {
    Sampler sampler({}, 4, kContext);
    EXPECT_TRUE(sampler.is_greedy());
    EXPECT_TRUE(sampler.takes_largest_logit());
    EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 3.0f, 2.0f, 0.0f}, 0), 1);
}

TEST(Sampler, GreedyPicksLowestIdOnTies) {
    Sampler sampler({}, 4, kContext);
    EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 3.0f, 3.0f, 3.0f}, 0), 1);
}

TEST(Sampler, GreedyDistributionHasOnlyTheChoice) {
    Sampler sampler({}, 3, kContext);
    Distribution distribution;
    sampler.distribution(std::vector<float>{1.0f, 3.0f, 2.0f}, distribution);
    EXPECT_THAT(distribution.tokens, ElementsAre(1));
    EXPECT_THAT(distribution.probabilities, ElementsAre(1.0f));
    EXPECT_EQ(sampler.draw(distribution, 5), 1);
}

TEST(Sampler, TheSameInputsGiveTheSameToken) {
    Sampler first(warm(), 500, kContext);
    Sampler second(warm(), 500, kContext);
    for (int position = 99; position >= 0; --position) {
        const auto row = random_row(static_cast<std::uint32_t>(position));
        const Token token = first.sample(row, position);
        ASSERT_EQ(second.sample(row, position), token);
        // Sampling something else in between changes nothing.
        second.sample(random_row(1), 1000);
        ASSERT_EQ(second.sample(row, position), token);
    }
}

TEST(Sampler, SeedAndPositionMatter) {
    SamplingOptions other_seed = warm();
    other_seed.seed = 8;
    Sampler sampler(warm(), 500, kContext);
    Sampler other(other_seed, 500, kContext);
    const auto row = random_row(3);
    int n_other_seed = 0;
    int n_other_position = 0;
    for (int position = 0; position < 100; ++position) {
        n_other_seed += sampler.sample(row, position) != other.sample(row, position);
        n_other_position += sampler.sample(row, position) != sampler.sample(row, position + 1000);
    }
    EXPECT_GT(n_other_seed, 30);
    EXPECT_GT(n_other_position, 30);
}

TEST(Sampler, SampleIsDistributionThenDraw) {
    Sampler sampler(warm(), 500, kContext);
    for (int position = 0; position < 100; ++position) {
        const auto row = random_row(static_cast<std::uint32_t>(position));
        Distribution distribution;
        sampler.distribution(row, distribution);
        ASSERT_EQ(sampler.draw(distribution, position), sampler.sample(row, position));
    }
}

TEST(Sampler, MeasuringTheGapGivesTheSameToken) {
    SamplingOptions cut = warm();
    cut.top_k = 3;
    for (const SamplingOptions& options : {SamplingOptions{}, warm(), cut}) {
        Sampler sampler(options, 500, kContext);
        for (int position = 0; position < 100; ++position) {
            const auto row = random_row(static_cast<std::uint32_t>(position));
            const Choice choice = sampler.sample_with_gap(row, position);
            ASSERT_EQ(choice.token, sampler.sample(row, position));
            ASSERT_GE(choice.gap, 0.0f);
        }
    }
}

TEST(Sampler, TheGreedyGapUsesAdjustedLogits) {
    SamplingOptions options;
    options.logit_bias = {{0, 1.5f}, {1, -0.25f}, {2, -0.25f}};
    Sampler sampler(options, 3, kContext);
    EXPECT_EQ(sampler.sample_with_gap(std::vector<float>{1.0f, 2.0f, 2.0f}, 0).gap, 0.75f);
    EXPECT_EQ(sampler.sample_with_gap(std::vector<float>{-9.0f, 2.0f, 2.0f}, 0).gap, 0.0f);
}

TEST(Sampler, TheGapIsInfiniteWithoutASecondChoice) {
    SamplingOptions only_one = warm();
    only_one.top_k = 1;
    const std::vector<float> row = {1.0f, -kInfinity, 0.5f};
    EXPECT_EQ(Sampler(only_one, 3, kContext).sample_with_gap(row, 0).gap, kInfinity);
    SamplingOptions forbidden;
    forbidden.logit_bias = {{2, -kInfinity}};
    EXPECT_EQ(Sampler(forbidden, 3, kContext).sample_with_gap(row, 0).gap, kInfinity);
}

// The meaning of the gap: raising a logit by less changes nothing, and raising some logit by more
// does.
TEST(Sampler, ALogitRaisedByTheGapChangesTheDraw) {
    SamplingOptions options = warm();
    options.top_k = 0;
    options.top_p = 1.0f;
    options.min_p = 0.0f;
    Sampler sampler(options, 20, kContext);
    for (int position = 0; position < 100; ++position) {
        const auto row = random_row(static_cast<std::uint32_t>(position), 20);
        const Choice choice = sampler.sample_with_gap(row, position);
        const auto n_changed = [&](float factor) {
            int n = 0;
            for (Token token = 0; token < 20; ++token) {
                auto raised = row;
                raised[token] += token == choice.token ? 0.0f : choice.gap * factor;
                n += sampler.sample(raised, position) != choice.token ? 1 : 0;
            }
            return n;
        };
        ASSERT_EQ(n_changed(0.99f), 0) << position;
        ASSERT_GE(n_changed(1.01f), 1) << position;
    }
}

TEST(Sampler, FrequenciesFollowTemperatureAndTruncation) {
    SamplingOptions options;
    options.temperature = 2.0f;
    options.top_k = 3;
    options.top_p = 1.0f;
    options.min_p = 0.0f;
    Sampler sampler(options, 4, kContext);
    // exp(logit / 2) is 4, 3, 2, 1: the last is cut, leaving 4/9, 3/9, 2/9.
    const std::vector<float> row = {2 * std::log(4.0f), 2 * std::log(3.0f), 2 * std::log(2.0f),
                                    0.0f};
    const double expected[] = {4.0 / 9, 3.0 / 9, 2.0 / 9, 0.0};
    constexpr int kDraws = 90'000;
    std::vector<int> counts(4);
    for (int position = 0; position < kDraws; ++position) {
        ++counts[sampler.sample(row, position)];
    }
    for (int i = 0; i < 4; ++i) {
        EXPECT_NEAR(counts[i], expected[i] * kDraws, 4 * std::sqrt(expected[i] * kDraws)) << i;
    }
}

TEST(Sampler, BiasSteersAndForbids) {
    SamplingOptions options;
    options.logit_bias = {{2, -kInfinity}, {0, 1.5f}};
    Sampler sampler(options, 3, kContext);
    EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 2.0f, 9.0f}, 0), 0);
}

TEST(Sampler, BiasComesBeforePenalties) {
    SamplingOptions options;
    options.logit_bias = {{0, 4.0f}};
    options.repeat_penalty = 2.0f;
    Sampler sampler(options, 2, kContext);
    sampler.accept(0);
    // (-2 + 4) / 2 = 1, which beats 0.9; penalised first it would be -4 + 4 = 0.
    EXPECT_EQ(sampler.sample(std::vector<float>{-2.0f, 0.9f}, 0), 0);
}

TEST(Sampler, PenaltiesFollowTheHistory) {
    SamplingOptions options;
    options.presence_penalty = 1.5f;
    options.repeat_last_n = 2;
    Sampler sampler(options, 3, kContext);
    const std::vector<float> row = {3.0f, 2.0f, 1.0f};
    EXPECT_EQ(sampler.sample(row, 0), 0);
    sampler.accept(0);
    EXPECT_EQ(sampler.sample(row, 1), 1);
    sampler.accept(1);
    EXPECT_EQ(sampler.sample(row, 2), 0);
    sampler.accept(2);
    EXPECT_EQ(sampler.sample(row, 3), 0);  // the first token has left the window
}

TEST(Sampler, RewindEqualsNeverHavingAccepted) {
    SamplingOptions options = warm();
    options.repeat_penalty = 1.5f;
    options.frequency_penalty = 0.5f;
    options.repeat_last_n = 5;
    Sampler plain(options, 500, kContext);
    Sampler drafting(options, 500, kContext);
    for (int position = 0; position < 200; ++position) {
        const auto row = random_row(static_cast<std::uint32_t>(position % 3));
        for (Token draft = 0; draft < 7; ++draft) {
            drafting.accept(draft * 3);
        }
        drafting.rewind(7);
        const Token token = plain.sample(row, position);
        ASSERT_EQ(drafting.sample(row, position), token);
        plain.accept(token);
        drafting.accept(token);
    }
}

TEST(Sampler, RewindToTheBeginningForgetsTheHistory) {
    SamplingOptions options;
    options.presence_penalty = 5.0f;
    Sampler sampler(options, 2, kContext);
    sampler.accept(0);
    EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 0.0f}, 0), 1);
    sampler.rewind(1);
    EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 0.0f}, 0), 0);
}

TEST(Sampler, MinusOneCoversTheWholeContext) {
    SamplingOptions options;
    options.presence_penalty = 5.0f;
    options.repeat_last_n = -1;
    Sampler sampler(options, 3, 4);
    for (Token token : {0, 2, 2, 2}) {
        sampler.accept(token);
    }
    EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 0.0f, 0.5f}, 0), 1);
    sampler.accept(2);  // now the 0 is outside a context of 4
    EXPECT_EQ(sampler.sample(std::vector<float>{1.0f, 0.0f, 0.5f}, 0), 0);
}

TEST(Sampler, AWindowLongerThanTheContextCostsNoMemory) {
    SamplingOptions options;
    options.presence_penalty = 1.0f;
    options.repeat_last_n = std::numeric_limits<int>::max();
    EXPECT_NO_THROW(Sampler(options, 3, kContext));
}

TEST(Sampler, NaNAndAllForbiddenAreErrors) {
    Sampler greedy({}, 2, kContext);
    Sampler sampling(warm(), 2, kContext);
    const std::vector<float> broken = {0.0f, std::numeric_limits<float>::quiet_NaN()};
    const std::vector<float> forbidden = {-kInfinity, -kInfinity};
    for (const auto& row : {broken, forbidden}) {
        EXPECT_THROW(greedy.sample(row, 0), Error);
        EXPECT_THROW(sampling.sample(row, 0), Error);
    }
    SamplingOptions nothing_left;
    nothing_left.logit_bias = {{0, -kInfinity}, {1, -kInfinity}};
    EXPECT_THROW(Sampler(nothing_left, 2, kContext).sample(std::vector<float>{1.0f, 2.0f}, 0),
                 Error);
}

TEST(Sampler, RefusesBadOptions) {
    SamplingOptions options;
    options.top_p = 0.0f;
    EXPECT_THROW(Sampler(options, 10, kContext), Error);
}

TEST(Sampler, TakesTheLargestLogitOnlyWhenNothingChangesIt) {
    EXPECT_FALSE(Sampler({.temperature = 0.5f}, 8, 8).takes_largest_logit());
    EXPECT_FALSE(Sampler({.repeat_penalty = 1.1f}, 8, 8).takes_largest_logit());
    EXPECT_FALSE(Sampler({.logit_bias = {{1, 1.0f}}}, 8, 8).takes_largest_logit());
}

}  // namespace
}  // namespace knap::sampler_test
