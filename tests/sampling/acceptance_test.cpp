#include "sampling/acceptance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sampling/draft_sampler.h"
#include "support/fake_constraint.h"
#include "support/toy_language.h"

namespace knap::acceptance_test {
namespace {

using test::chain;
using test::chi_square;
using test::chi_square_bound;
using test::decode_plainly;
using test::decode_speculatively;
using test::dense;
using test::imitation;
using test::Language;
using test::logits_of;
using test::random_language;
using test::random_shape;
using test::Text;
using test::ToyResult;
using test::ToyRun;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kContext = 64;

SamplingOptions warm(std::uint64_t seed = 0) {
    SamplingOptions options;
    options.temperature = 0.9f;
    options.top_k = 0;
    options.top_p = 1.0f;
    options.min_p = 0.0f;
    options.seed = seed;
    return options;
}

SamplingOptions with_penalties(SamplingOptions options) {
    options.repeat_penalty = 1.3f;
    options.presence_penalty = 0.7f;
    options.frequency_penalty = 0.4f;
    options.repeat_last_n = 5;
    options.logit_bias = {{1, 0.8f}, {3, -0.5f}};
    return options;
}

// Nothing fits after the end of a constrained text, so no token can be chosen there.
TEST(Acceptance, ADraftMayEndAConstrainedText) {
    constexpr Token kEnd = 2;
    Sampler sampler({}, 4, kContext);
    test::FakeConstraint constraint(
        [](const Text& text, Token) { return text.empty() || text.back() != kEnd; });
    constraint.end_of_text = kEnd;
    sampler.accept(0);
    sampler.constrain(&constraint);
    DraftTree tree;
    tree.set_chain(Text{1, kEnd});
    const std::vector<float> logits = {0, 9, 0, 0, 0, 0, 9, 0, 0, 0, 0, 9};
    Acceptance acceptance(sampler, {.measures_gaps = true});
    const Verdict& verdict = acceptance.judge(tree, logits, 1);
    EXPECT_THAT(verdict.path, ElementsAre(0));
    EXPECT_EQ(verdict.next, kEnd);
    EXPECT_EQ(verdict.gaps.size(), 2u);
    sampler.accept(1);
    sampler.accept(kEnd);
    EXPECT_THAT(constraint.text, ElementsAre(1, kEnd));
}

// Greedy, shared noise and equality: whatever is drafted, the text is that of plain decoding.
TEST(Acceptance, EmitsTheTokensOfPlainDecoding) {
    int longest_path = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SamplingOptions sampling = seed % 3 == 0 ? SamplingOptions{} : warm(seed);
        sampling.top_k = seed % 5 == 0 ? 4 : 0;
        const Language target = random_language(seed, 12);
        const ToyRun run = {
            .sampling = seed % 2 == 0 ? with_penalties(sampling) : sampling,
            .rule = seed % 4 < 2 ? AcceptanceRule::shared_noise : AcceptanceRule::equality,
            .n_vocab = 12,
            .target = target,
            .draft = imitation(target, seed + 1, 0.5),
            .shape = seed % 7 < 3 ? chain(static_cast<int>(seed % 7)) : random_shape(seed, 4, 3),
            .prompt = {1, 2, 3, 2},
            .n_tokens = 20};
        const ToyResult result = decode_speculatively(run);
        ASSERT_EQ(result.text, decode_plainly(run)) << seed;
        longest_path = std::max(longest_path, result.longest_path);
    }
    EXPECT_EQ(longest_path, 4);
}

TEST(Acceptance, TheRatioRuleIsGreedyAtTemperatureZero) {
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
        const Language target = random_language(seed, 12);
        const ToyRun run = {.sampling = SamplingOptions{},
                            .rule = AcceptanceRule::ratio,
                            .n_vocab = 12,
                            .target = target,
                            .draft = imitation(target, seed + 1, 0.5),
                            .shape = random_shape(seed, 3, 3),
                            .prompt = {1},
                            .n_tokens = 20};
        ASSERT_EQ(decode_speculatively(run).text, decode_plainly(run)) << seed;
    }
}

// The probability of each text of run.n_tokens tokens. The last token varies fastest.
std::vector<double> plain_law(const ToyRun& run, Text& text, int n_left, Sampler& sampler) {
    if (n_left == 0) {
        return {1.0};
    }
    Distribution p;
    sampler.distribution(run.target(text), p);
    const std::vector<double> probabilities = dense(p, run.n_vocab);
    std::vector<double> law;
    for (Token token = 0; token < run.n_vocab; ++token) {
        text.push_back(token);
        sampler.accept(token);
        for (const double rest : plain_law(run, text, n_left - 1, sampler)) {
            law.push_back(probabilities[token] * rest);
        }
        sampler.rewind(1);
        text.pop_back();
    }
    return law;
}

std::vector<double> plain_law(const ToyRun& run) {
    Sampler sampler(run.sampling, run.n_vocab, kContext);
    for (const Token token : run.prompt) {
        sampler.accept(token);
    }
    Text text = run.prompt;
    return plain_law(run, text, run.n_tokens, sampler);
}

// Over many seeds, texts are as frequent as the whole model's distributions predict.
void expect_plain_frequencies(ToyRun run, int n_seeds) {
    const std::vector<double> law = plain_law(run);
    std::vector<int> counts(law.size());
    int longest_path = 0;
    for (int seed = 0; seed < n_seeds; ++seed) {
        run.sampling.seed = static_cast<std::uint64_t>(seed);
        const ToyResult result = decode_speculatively(run);
        std::size_t cell = 0;
        for (const Token token : result.text) {
            cell = cell * static_cast<std::size_t>(run.n_vocab) + static_cast<std::size_t>(token);
        }
        ++counts[cell];
        longest_path = std::max(longest_path, result.longest_path);
    }
    EXPECT_LT(chi_square(counts, law), chi_square_bound(law));
    EXPECT_GT(longest_path, 0);
}

class AcceptanceFrequencies : public ::testing::TestWithParam<AcceptanceRule> {};

INSTANTIATE_TEST_SUITE_P(Rules,
                         AcceptanceFrequencies,
                         ::testing::Values(AcceptanceRule::shared_noise,
                                           AcceptanceRule::ratio,
                                           AcceptanceRule::equality),
                         [](const auto& tested) { return test::name_of(tested.param); });

TEST_P(AcceptanceFrequencies, OfChainsMatchPlainSampling) {
    for (const int n_drafted : {1, 3}) {
        expect_plain_frequencies({.sampling = warm(),
                                  .rule = GetParam(),
                                  .n_vocab = 3,
                                  .target = random_language(11, 3),
                                  .draft = random_language(22, 3),
                                  .shape = chain(n_drafted),
                                  .prompt = {0},
                                  .n_tokens = 3},
                                 30'000);
    }
}

TEST_P(AcceptanceFrequencies, OfTreesMatchPlainSampling) {
    for (const std::uint64_t seed : {3, 4, 6}) {
        expect_plain_frequencies({.sampling = warm(),
                                  .rule = GetParam(),
                                  .n_vocab = 4,
                                  .target = random_language(seed, 4),
                                  .draft = random_language(seed + 50, 4),
                                  .shape = random_shape(seed, 2, 3),
                                  .prompt = {0},
                                  .n_tokens = 3},
                                 30'000);
    }
}

TEST_P(AcceptanceFrequencies, WithPenaltiesAndTruncationMatchPlainSampling) {
    SamplingOptions sampling = with_penalties(warm());
    sampling.top_k = 3;
    expect_plain_frequencies({.sampling = sampling,
                              .rule = GetParam(),
                              .n_vocab = 4,
                              .target = random_language(31, 4),
                              .draft = random_language(32, 4),
                              .shape = random_shape(9, 2, 3),
                              .prompt = {0, 2},
                              .n_tokens = 3},
                             30'000);
}

// The share of first drafts that are accepted, over positions with the same row of logits.
double acceptance_rate(AcceptanceRule rule,
                       const std::vector<double>& p,
                       const std::vector<double>& q,
                       int n_drafts) {
    SamplingOptions options = warm();
    options.temperature = 1.0f;
    Sampler sampler(options, static_cast<int>(p.size()), kContext);
    DraftSampler drafts(sampler, rule);
    Acceptance acceptance(sampler, {.rule = rule});
    std::vector<float> rows = logits_of(p);
    const std::vector<float> bonus = rows;
    rows.insert(rows.end(), bonus.begin(), bonus.end());
    DraftTree tree;
    int n_kept = 0;
    for (std::int64_t position = 0; position < n_drafts; ++position) {
        const DraftChoice& choice = drafts.choose(logits_of(q), position, 1);
        tree.clear();
        tree.add(choice.tokens.front(), kPendingNode);
        if (choice.is_drawn) {
            tree.set_drawn_from(kPendingNode, choice.q);
        }
        n_kept += static_cast<int>(acceptance.judge(tree, rows, position).path.size());
    }
    return n_kept / static_cast<double>(n_drafts);
}

TEST(Acceptance, RatesMatchTheory) {
    const std::vector<double> p = {0.45, 0.25, 0.2, 0.1};
    const std::vector<double> q = {0.15, 0.3, 0.15, 0.4};
    double shared_noise = 0.0;
    double ratio = 0.0;
    double equality = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        double total = 0.0;
        for (std::size_t j = 0; j < p.size(); ++j) {
            total += std::max(p[j] / p[i], q[j] / q[i]);
        }
        shared_noise += 1 / total;
        ratio += std::min(p[i], q[i]);  // 1 minus the total variation
        equality += p[i] * q[i];
    }
    constexpr int kDrafts = 40'000;
    const double tolerance = 4 * 0.5 / std::sqrt(kDrafts);
    EXPECT_NEAR(acceptance_rate(AcceptanceRule::shared_noise, p, q, kDrafts), shared_noise,
                tolerance);
    EXPECT_NEAR(acceptance_rate(AcceptanceRule::ratio, p, q, kDrafts), ratio, tolerance);
    EXPECT_NEAR(acceptance_rate(AcceptanceRule::equality, p, q, kDrafts), equality, tolerance);
}

// Two tokens are drafted, and the first is often rejected. The second, dropped with it, decides
// whether its position is drafted again. If that draft reused the noise, three out of four emitted
// tokens would be 0.
TEST(Acceptance, ADiscardedDraftMaySteerTheNextRound) {
    const std::vector<float> target = logits_of(std::vector{0.1, 0.9});
    const std::vector<float> draft = logits_of(std::vector{0.9, 0.1});
    const std::vector<float> even = {0.0f, 0.0f};
    std::vector<float> rows = target;
    rows.insert(rows.end(), {0.0f, 0.0f, 0.0f, 0.0f});
    std::vector<int> counts(2);
    for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
        SamplingOptions options = warm(seed);
        options.temperature = 1.0f;
        Sampler sampler(options, 2, kContext);
        DraftSampler drafts(sampler, AcceptanceRule::ratio);
        Acceptance acceptance(sampler, {.rule = AcceptanceRule::ratio});
        DraftTree tree;
        const auto draft_token = [&](const std::vector<float>& logits, int position, int parent) {
            const DraftChoice& choice = drafts.choose(logits, position, 1);
            tree.set_drawn_from(parent, choice.q);
            return tree.add(choice.tokens.front(), parent);
        };
        draft_token(even, 1, draft_token(draft, 0, kPendingNode));
        if (!acceptance.judge(tree, rows, 0).path.empty()) {
            continue;
        }
        const bool drafts_again = tree.token(1) == 0;
        tree.clear();
        if (drafts_again) {
            draft_token(even, 1, kPendingNode);
        }
        const Verdict& verdict =
            acceptance.judge(tree, std::span(rows).subspan(2, drafts_again ? 4 : 2), 1);
        ++counts[verdict.path.empty() ? verdict.next : tree.token(0)];
    }
    EXPECT_GT(counts[0] + counts[1], 5000);
    EXPECT_LT(chi_square(counts, std::vector{0.5, 0.5}), chi_square_bound(std::vector{0.5, 0.5}));
}

// Drafts chosen deterministically are judged by p alone, also among siblings and repeated siblings.
TEST(Acceptance, RatioAcceptsDeterministicDraftsWithTheirProbability) {
    const std::vector<double> p = {0.5, 0.3, 0.2};
    std::vector<float> rows;
    for (int i = 0; i < 4; ++i) {
        const std::vector<float> row = logits_of(p);
        rows.insert(rows.end(), row.begin(), row.end());
    }
    DraftTree tree;
    tree.add(2, kPendingNode);
    tree.add(1, kPendingNode);
    tree.add(2, kPendingNode);
    std::vector<int> kept(3);
    std::vector<int> counts(3);
    for (std::uint64_t seed = 0; seed < 30'000; ++seed) {
        SamplingOptions options = warm(seed);
        options.temperature = 1.0f;
        Sampler sampler(options, 3, kContext);
        Acceptance acceptance(sampler, {.rule = AcceptanceRule::ratio});
        const Verdict& verdict = acceptance.judge(tree, rows, 0);
        if (verdict.path.empty()) {
            ++counts[verdict.next];
        } else {
            ++kept[verdict.path.front()];
            ++counts[tree.token(verdict.path.front())];
        }
    }
    EXPECT_LT(chi_square(counts, p), chi_square_bound(p));
    EXPECT_EQ(counts[0] + kept[0] + kept[1], 30'000);
    EXPECT_EQ(kept[2], 0);
}

// A tree of one path and a wrong sibling, on rows with an obvious choice.
//   pending -> 2; 2 -> 0; 2 0 -> 1
DraftTree two_right_drafts() {
    DraftTree tree;
    tree.add(1, kPendingNode);
    tree.add(2, kPendingNode);
    tree.add(0, 1);
    return tree;
}

std::vector<float> rows_of_two_right_drafts() {
    return {0.0f, 1.0f, 5.0f,   // pending: 2
            9.0f, 9.0f, 9.0f,   // after 1, which is wrong
            3.0f, 0.5f, 0.0f,   // after 2: 0
            0.0f, 8.0f, 1.0f};  // after 2 0: 1
}

TEST(Acceptance, FollowsTheChildThatTheModelChooses) {
    Sampler sampler({}, 3, kContext);
    Acceptance acceptance(sampler, {});
    const Verdict& verdict = acceptance.judge(two_right_drafts(), rows_of_two_right_drafts(), 0);
    EXPECT_THAT(verdict.path, ElementsAre(1, 2));
    EXPECT_EQ(verdict.next, 1);
    EXPECT_THAT(verdict.gaps, IsEmpty());
}

TEST(Acceptance, WithoutADraftItIsAStepOfPlainDecoding) {
    for (const auto rule :
         {AcceptanceRule::shared_noise, AcceptanceRule::ratio, AcceptanceRule::equality}) {
        Sampler sampler(warm(), 8, kContext);
        Acceptance acceptance(sampler, {.rule = rule});
        const Language target = random_language(5, 8);
        for (Token token = 0; token < 50; ++token) {
            const std::vector<float> row = target(Text{token});
            const Verdict& verdict = acceptance.judge({}, row, token);
            EXPECT_THAT(verdict.path, IsEmpty());
            EXPECT_EQ(verdict.next, sampler.sample(row, token));
        }
    }
}

TEST(Acceptance, MeasuresTheGapOfEachEmittedToken) {
    Sampler sampler({}, 3, kContext);
    Acceptance acceptance(sampler, {.measures_gaps = true});
    const Verdict& verdict = acceptance.judge(two_right_drafts(), rows_of_two_right_drafts(), 0);
    EXPECT_THAT(verdict.gaps, ElementsAre(4.0f, 2.5f, 7.0f));
}

TEST(Acceptance, MeasuringGapsChangesNoToken) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Sampler sampler(warm(seed), 3, kContext);
        Acceptance plain(sampler, {});
        Acceptance measuring(sampler, {.measures_gaps = true});
        const DraftTree tree = two_right_drafts();
        const std::vector<float> rows = rows_of_two_right_drafts();
        const Verdict& expected = plain.judge(tree, rows, 3);
        const Verdict& verdict = measuring.judge(tree, rows, 3);
        ASSERT_EQ(verdict.path, expected.path);
        ASSERT_EQ(verdict.next, expected.next);
        ASSERT_EQ(verdict.gaps.size(), verdict.path.size() + 1);
        ASSERT_EQ(verdict.gaps[0], sampler.sample_with_gap(std::span(rows).first(3), 3).gap);
    }
}

TEST(Acceptance, RatioHasNoGaps) {
    Sampler sampler(warm(), 3, kContext);
    Acceptance acceptance(sampler, {.rule = AcceptanceRule::ratio, .measures_gaps = true});
    EXPECT_THAT(acceptance.judge(two_right_drafts(), rows_of_two_right_drafts(), 0).gaps,
                IsEmpty());
}

TEST(Acceptance, AnAssumedRateAcceptsFirstChildrenAtRandom) {
    // In every row the choice is 3, which is never drafted.
    const std::vector<float> rows = {0.0f, 0.0f, 0.0f, 9.0f, 0.0f, 0.0f, 0.0f, 9.0f,
                                     0.0f, 0.0f, 0.0f, 9.0f, 0.0f, 0.0f, 0.0f, 9.0f};
    DraftTree tree;
    tree.add(0, kPendingNode);
    tree.add(1, kPendingNode);
    tree.add(2, 0);
    constexpr int kRounds = 20'000;
    std::vector<int> n_paths(3);
    for (int round = 0; round < kRounds; ++round) {
        SamplingOptions options;
        options.seed = static_cast<std::uint64_t>(round);
        Sampler sampler(options, 4, kContext);
        Acceptance acceptance(sampler, {.assumed_rate = 0.7, .measures_gaps = true});
        const Verdict& verdict = acceptance.judge(tree, rows, 4);
        ASSERT_EQ(verdict.next, 3);
        ASSERT_TRUE(verdict.path.empty() || verdict.path.front() == 0);
        ASSERT_THAT(verdict.gaps, IsEmpty());
        ++n_paths[verdict.path.size()];
    }
    const std::vector<double> expected = {0.3, 0.7 * 0.3, 0.7 * 0.7};
    EXPECT_LT(chi_square(n_paths, expected), chi_square_bound(expected));
}

TEST(Acceptance, AssumedRatesOfOneAndZeroAcceptAllAndNone) {
    Sampler sampler({}, 3, kContext);
    const DraftTree tree = two_right_drafts();
    const std::vector<float> rows = rows_of_two_right_drafts();
    EXPECT_THAT(Acceptance(sampler, {.assumed_rate = 1.0}).judge(tree, rows, 0).path,
                ElementsAre(0));
    EXPECT_THAT(Acceptance(sampler, {.assumed_rate = 0.0}).judge(tree, rows, 0).path, IsEmpty());
}

struct HistoryCase {
    const char* name;
    AcceptanceOptions options;
};

class AcceptanceHistory : public ::testing::TestWithParam<HistoryCase> {};

INSTANTIATE_TEST_SUITE_P(Rules,
                         AcceptanceHistory,
                         ::testing::Values(HistoryCase{"SharedNoise", {}},
                                           HistoryCase{"Ratio", {.rule = AcceptanceRule::ratio}},
                                           HistoryCase{"Assumption", {.assumed_rate = 1.0}}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Each row leaves one choice, 0 then 0 then 1, despite penalties. The path is 0 0.
struct CertainRound {
    CertainRound() {
        tree.add(0, kPendingNode);
        tree.add(0, 0);
    }

    DraftTree tree;
    std::vector<float> rows = {90.0f, 0.0f, 90.0f, 0.0f, 0.0f, 90.0f};
};

Sampler sampler_with_history() {
    SamplingOptions options = warm();
    options.frequency_penalty = 1.0f;
    options.repeat_last_n = 3;
    Sampler sampler(options, 2, kContext);
    for (const Token token : {0, 1, 1, 0}) {
        sampler.accept(token);
    }
    return sampler;
}

// The last three of 0 1 1 0 are 1 1 0.
constexpr float kAfterHistory[] = {-1.0f, -2.0f};

TEST_P(AcceptanceHistory, IsRestoredAfterAVerdict) {
    Sampler sampler = sampler_with_history();
    Acceptance acceptance(sampler, GetParam().options);
    const CertainRound round;
    EXPECT_THAT(acceptance.judge(round.tree, round.rows, 4).path, ElementsAre(0, 1));
    EXPECT_THAT(sampler.adjust(std::vector<float>{0.0f, 0.0f}),
                ::testing::ElementsAreArray(kAfterHistory));
}

TEST_P(AcceptanceHistory, IsRestoredWhenARowCannotBeSampled) {
    Sampler sampler = sampler_with_history();
    Acceptance acceptance(sampler, GetParam().options);
    CertainRound round;
    round.rows[5] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THROW(acceptance.judge(round.tree, round.rows, 4), Error);
    EXPECT_THAT(sampler.adjust(std::vector<float>{0.0f, 0.0f}),
                ::testing::ElementsAreArray(kAfterHistory));
}

}  // namespace
}  // namespace knap::acceptance_test
