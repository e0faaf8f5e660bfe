// The best tokens of a row decide as the row itself does.
#include "sampling/logit_rows.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sampling/acceptance.h"
#include "sampling/sampler.h"

namespace knap::logit_rows_test {
namespace {

constexpr int kVocab = 500;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

struct RandomRow {
    std::vector<float> logits = std::vector<float>(kVocab);
    std::mt19937 random;

    // Logits in steps, so that many tie; some forbidden.
    RandomRow(unsigned seed, float step) : random(seed) {
        std::normal_distribution<float> normal(0.0f, 3.0f);
        for (float& logit : logits) {
            logit = step > 0 ? step * std::round(normal(random) / step) : normal(random);
        }
        for (int i = 0; i < 20; ++i) {
            logits[random() % kVocab] = kLowest;
        }
    }

    // The best n with their ties, some others, in any order.
    std::vector<RankKey> best(int n) {
        Ranking ranking;
        ranking.take_largest(logits, static_cast<std::size_t>(n + static_cast<int>(random() % 9)));
        std::vector<RankKey> keys = ranking.keys();
        std::ranges::shuffle(keys, random);
        return keys;
    }
};

std::vector<SamplingOptions> options_of_every_kind() {
    std::vector<SamplingOptions> all{{.temperature = 0}};
    for (const float temperature : {0.3f, 1.0f, 2.0f}) {
        for (const int top_k : {1, 7, 40}) {
            for (const float top_p : {1.0f, 0.8f}) {
                for (const float min_p : {0.0f, 0.1f}) {
                    all.push_back({.temperature = temperature,
                                   .top_k = top_k,
                                   .top_p = top_p,
                                   .min_p = min_p,
                                   .seed = 9});
                }
            }
        }
    }
    return all;
}

TEST(BestTokens, DecideAsTheRowDoes) {
    for (const SamplingOptions& options : options_of_every_kind()) {
        Sampler sampler(options, kVocab, 100);
        const int n = sampler.n_best_needed();
        ASSERT_EQ(n, options.temperature > 0 ? options.top_k : 2);
        for (unsigned seed = 0; seed < 60; ++seed) {
            RandomRow row(seed, seed % 2 == 0 ? 0.0f : 0.5f);
            const std::vector<RankKey> best = row.best(n);
            const LogitRow from{.best = best};
            EXPECT_EQ(sampler.sample(from, seed), sampler.sample(row.logits, seed));
            const Choice choice = sampler.sample_with_gap(from, seed);
            const Choice expected = sampler.sample_with_gap(row.logits, seed);
            EXPECT_EQ(choice.token, expected.token);
            EXPECT_EQ(choice.gap, expected.gap);
            EXPECT_EQ(best_token(from), best_token({.logits = row.logits}));
        }
    }
}

TEST(BestTokens, OfOneTokenHaveNoGap) {
    Sampler sampler({.temperature = 0}, kVocab, 100);
    const std::vector<RankKey> best{rank_key(1.0f, 7)};
    EXPECT_EQ(sampler.sample_with_gap(LogitRow{.best = best}, 0).gap,
              std::numeric_limits<float>::infinity());
}

// Where something else decides, rows are needed whole.
TEST(BestTokens, AreNotEnoughWithBiasPenaltiesOrWithoutTopK) {
    const auto needed = [](const SamplingOptions& options) {
        return Sampler(options, kVocab, 100).n_best_needed();
    };
    EXPECT_EQ(needed({.temperature = 1, .top_k = 0}), 0);
    EXPECT_EQ(needed({.temperature = 1, .top_k = kVocab}), 0);
    EXPECT_EQ(needed({.temperature = 1, .top_k = kVocab - 1}), kVocab - 1);
    EXPECT_EQ(needed({.temperature = 0, .repeat_penalty = 1.1f}), 0);
    EXPECT_EQ(needed({.temperature = 0, .logit_bias = {{3, 1.0f}}}), 0);
}

TEST(BestTokens, AreNotEnoughForTheRatioRule) {
    Sampler sampler({.temperature = 1}, kVocab, 100);
    EXPECT_EQ(Acceptance(sampler, {.rule = AcceptanceRule::ratio}).n_best_needed(), 0);
    EXPECT_EQ(Acceptance(sampler, {.rule = AcceptanceRule::shared_noise}).n_best_needed(), 40);
    Sampler greedy({.temperature = 0}, kVocab, 100);
    EXPECT_EQ(Acceptance(greedy, {.rule = AcceptanceRule::ratio}).n_best_needed(), 2);
}

TEST(BestTokens, JudgeADraftAsRowsDo) {
    const SamplingOptions options{.temperature = 0.5f, .top_k = 5, .seed = 4};
    for (unsigned seed = 0; seed < 40; ++seed) {
        std::vector<float> logits;
        std::vector<RankKey> keys;
        std::vector<int> ends;
        for (unsigned i = 0; i < 4; ++i) {
            RandomRow row(4 * seed + i, 0.5f);
            const std::vector<RankKey> best = row.best(5);
            logits.insert(logits.end(), row.logits.begin(), row.logits.end());
            keys.insert(keys.end(), best.begin(), best.end());
            ends.push_back(static_cast<int>(keys.size()));
        }
        Sampler sampler(options, kVocab, 100);
        DraftTree tree;
        int parent = kPendingNode;
        for (std::size_t i = 0; i < 3; ++i) {
            const auto row = std::span(logits).subspan(i * kVocab, kVocab);
            const Token drawn = sampler.sample(row, 10 + static_cast<int>(i));
            const bool is_wrong = seed % 4 == i;
            parent = tree.add(is_wrong ? (drawn + 1) % kVocab : drawn, parent);
        }
        Acceptance acceptance(sampler, {.measures_gaps = true});
        const Verdict expected = acceptance.judge(tree, logits, 10);
        const Verdict verdict = acceptance.judge(tree, LogitRows({}, kVocab, {keys, ends}), 10);
        EXPECT_EQ(verdict.path, expected.path);
        EXPECT_EQ(verdict.next, expected.next);
        EXPECT_EQ(verdict.gaps, expected.gaps);
    }
}

}  // namespace
}  // namespace knap::logit_rows_test
