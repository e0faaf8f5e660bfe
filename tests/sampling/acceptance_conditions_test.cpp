// The conditions under which speculative sampling keeps the whole model's distribution, one test
// each (docs/methods.md, "Conditions for exact sampling").
#include <algorithm>
#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sampling/acceptance.h"
#include "sampling/draft_sampler.h"
#include "sampling/ratio_rule.h"
#include "support/toy_language.h"

namespace knap::acceptance_conditions_test {
namespace {

using test::dense;
using test::distribution_of;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

using Probabilities = std::vector<double>;

auto near(const Probabilities& expected, double tolerance) {
    std::vector<::testing::Matcher<double>> matchers;
    for (const double value : expected) {
        matchers.push_back(DoubleNear(value, tolerance));
    }
    return ElementsAreArray(matchers);
}

// The residual of p, spread over the vocabulary.
Probabilities remaining(const RatioTrial& trial, int n_vocab) {
    Probabilities probabilities(static_cast<std::size_t>(n_vocab));
    for (std::size_t i = 0; i < trial.tokens().size(); ++i) {
        probabilities[trial.tokens()[i]] = trial.remaining()[i];
    }
    return probabilities;
}

// The distribution of the emitted token when `draft` is judged against p as a draw from q (null:
// chosen deterministically).
Probabilities outcome(const Distribution& p, const Distribution* q, Token draft, int n_vocab) {
    RatioTrial trial;
    trial.start(p, q, n_vocab);
    const double kept = trial.keep_probability(draft);
    trial.reject(draft);
    Probabilities result = remaining(trial, n_vocab);
    for (double& probability : result) {
        probability *= 1.0 - kept;
    }
    result[draft] += kept;
    return result;
}

// The mean outcome over drafts drawn from q.
Probabilities average(const Distribution& q,
                      const std::function<Probabilities(Token)>& outcome_of) {
    Probabilities mean;
    const Probabilities weights = dense(q, 1 + *std::max_element(q.tokens.begin(), q.tokens.end()));
    for (const Token draft : q.tokens) {
        const Probabilities result = outcome_of(draft);
        mean.resize(result.size());
        for (std::size_t i = 0; i < result.size(); ++i) {
            mean[i] += weights[draft] * result[i];
        }
    }
    return mean;
}

SamplingOptions cut_to_two() {
    SamplingOptions options;
    options.temperature = 0.7f;
    options.top_k = 2;
    options.top_p = 1.0f;
    options.min_p = 0.0f;
    return options;
}

TEST(AcceptanceCondition1, QIsWhatTheDraftWasDrawnFrom) {
    const Distribution p = distribution_of(Probabilities{0.5, 0.3, 0.2});
    const Distribution q = distribution_of(Probabilities{0.6, 0.3, 0.1});
    // A greedy draft is always token 0, so its q is one-hot: it is accepted with p(0), and the
    // residual is p without 0.
    RatioTrial trial;
    trial.start(p, nullptr, 3);
    EXPECT_NEAR(trial.keep_probability(0), 0.5, 1e-7);
    EXPECT_THAT(outcome(p, nullptr, 0, 3), near(dense(p, 3), 1e-15));
    trial.reject(0);
    EXPECT_THAT(remaining(trial, 3), near({0.0, 0.6, 0.4}, 1e-7));
    // Judged as a draw from q it would give another distribution.
    EXPECT_THAT(outcome(p, &q, 0, 3), near({5.0 / 6, 0.0, 1.0 / 6}, 1e-6));
}

TEST(AcceptanceCondition1, TheDraftSamplerReturnsTheQItDrewFrom) {
    SamplingOptions options = cut_to_two();
    const std::vector<float> logits = {1.0f, 2.0f, 0.5f, 1.5f};
    Sampler sampler(options, 4, 16);
    Distribution q;
    sampler.distribution(logits, q);
    DraftSampler drafts(sampler, AcceptanceRule::ratio);
    std::vector<int> counts(4);
    for (int position = 0; position < 20'000; ++position) {
        const DraftChoice& choice = drafts.choose(logits, position, 1);
        ASSERT_TRUE(choice.is_drawn);
        ASSERT_EQ(choice.q.tokens, q.tokens);
        ASSERT_EQ(choice.q.probabilities, q.probabilities);
        ++counts[choice.tokens.front()];
    }
    const Probabilities expected = dense(q, 4);
    EXPECT_LT(test::chi_square(counts, expected), test::chi_square_bound(expected));
}

class AcceptanceCondition2 : public ::testing::TestWithParam<AcceptanceRule> {};

INSTANTIATE_TEST_SUITE_P(Rules,
                         AcceptanceCondition2,
                         ::testing::Values(AcceptanceRule::shared_noise,
                                           AcceptanceRule::ratio,
                                           AcceptanceRule::equality),
                         [](const auto& tested) { return test::name_of(tested.param); });

// The first row leaves one choice, which is drafted. The bonus row has four, of which two are cut.
TEST_P(AcceptanceCondition2, TheBonusRowIsTransformedLikeAnyOther) {
    const std::vector<float> rows = {0.0f, 90.0f, 0.0f, 0.0f, 1.0f, 1.5f, 1.1f, 1.4f};
    DraftTree tree;
    tree.add(1, kPendingNode);
    Probabilities expected;
    std::vector<int> counts(4);
    for (std::uint64_t seed = 0; seed < 5000; ++seed) {
        SamplingOptions options = cut_to_two();
        options.seed = seed;
        Sampler sampler(options, 4, 16);
        Acceptance acceptance(sampler, {.rule = GetParam()});
        const Verdict& verdict = acceptance.judge(tree, rows, 10);
        ASSERT_THAT(verdict.path, ElementsAre(0));
        // Nothing was drafted there, so it is plain decoding's own draw.
        ASSERT_EQ(verdict.next, sampler.sample(std::span(rows).subspan(4), 11));
        ++counts[verdict.next];
        Distribution bonus;
        sampler.distribution(std::span(rows).subspan(4), bonus);
        expected = dense(bonus, 4);
    }
    EXPECT_EQ(counts[0] + counts[2], 0);
    EXPECT_LT(test::chi_square(counts, expected), test::chi_square_bound(expected));
}

TEST(AcceptanceCondition3, TheDraftsTransformMayDiffer) {
    const std::vector<float> target = {1.0f, 2.0f, 0.5f, 1.5f};
    const std::vector<float> draft = {2.0f, 1.0f, 1.9f, 1.5f};
    Distribution p;
    Sampler(cut_to_two(), 4, 16).distribution(target, p);
    SamplingOptions hotter = cut_to_two();
    hotter.temperature = 2.0f;
    hotter.top_k = 0;
    Distribution q;
    Sampler(hotter, 4, 16).distribution(draft, q);
    const auto outcome_of = [&](Token token) { return outcome(p, &q, token, 4); };
    EXPECT_THAT(average(q, outcome_of), near(dense(p, 4), 1e-14));
    // Tokens that the whole model's transform cuts are never accepted.
    RatioTrial trial;
    trial.start(p, &q, 4);
    EXPECT_EQ(trial.keep_probability(0), 0.0);
    EXPECT_EQ(trial.keep_probability(2), 0.0);
    EXPECT_GT(trial.keep_probability(3), 0.0);
}

// The counterexample: drafts with q below 0.3 are dropped, and the token is drawn from p instead.
TEST(AcceptanceCondition4, ADrawnTokenIsNotDiscardedForItsOwnProbability) {
    const Distribution p = distribution_of(Probabilities{0.5, 0.3, 0.2});
    const Distribution q = distribution_of(Probabilities{0.2, 0.2, 0.6});
    const Probabilities dense_q = dense(q, 3);
    const auto keeping = [&](Token draft) { return outcome(p, &q, draft, 3); };
    const auto discarding = [&](Token draft) {
        return dense_q[draft] < 0.3 ? dense(p, 3) : keeping(draft);
    };
    EXPECT_THAT(average(q, discarding), near({0.50, 0.22, 0.28}, 1e-6));
    EXPECT_THAT(average(q, keeping), near(dense(p, 3), 1e-14));
}

TEST(AcceptanceCondition5, AnEmptyResidualDrawsFromP) {
    const Distribution p = distribution_of(Probabilities{0.5, 0.3, 0.2});
    RatioTrial drawn;
    drawn.start(p, &p, 3);
    drawn.reject(0);  // only rounding could do this: with p = q the probability of acceptance is 1
    EXPECT_THAT(remaining(drawn, 3), near(dense(p, 3), 1e-15));

    const Distribution certain = distribution_of(Probabilities{0.0, 1.0, 0.0});
    RatioTrial chosen;
    chosen.start(certain, nullptr, 3);
    chosen.reject(1);
    EXPECT_THAT(remaining(chosen, 3), ElementsAre(0.0, 1.0, 0.0));

    Probabilities below = {0.25, 0.5};
    leave_residual(below, Probabilities{0.5, 0.5});
    EXPECT_THAT(below, ElementsAre(0.25, 0.5));
}

// Floats are accurate to about 1e-7; these results to 1e-15.
TEST(AcceptanceCondition6, RatioAndResidualAreDouble) {
    const Probabilities p = {0.1, 0.2, 0.3, 0.4};
    const Probabilities q = {0.4, 0.1, 0.35, 0.15};
    EXPECT_EQ(keep_probability(p[0], q[0]), p[0] / q[0]);
    Probabilities residual = p;
    leave_residual(residual, q);
    EXPECT_THAT(residual, near({0.0, 0.1 / 0.35, 0.0, 0.25 / 0.35}, 1e-15));

    const Distribution float_p = distribution_of(p);
    const Distribution float_q = distribution_of(q);
    RatioTrial trial;
    trial.start(float_p, &float_q, 4);
    EXPECT_NEAR(trial.keep_probability(0), dense(float_p, 4)[0] / dense(float_q, 4)[0], 1e-15);
}

TEST(AcceptanceCondition6, TheTreeKeepsQAsComputed) {
    Sampler sampler(cut_to_two(), 3, 16);
    DraftSampler drafts(sampler, AcceptanceRule::ratio);
    DraftTree tree;
    const DraftChoice& first = drafts.choose(std::vector<float>{1.0f, 2.0f, 0.0f}, 5, 1);
    const Distribution q = first.q;
    tree.add(first.tokens.front(), kPendingNode);
    tree.set_drawn_from(kPendingNode, first.q);
    drafts.choose(std::vector<float>{0.0f, 1.0f, 2.0f}, 6, 1);
    EXPECT_EQ(tree.drawn_from(kPendingNode)->tokens, q.tokens);
    EXPECT_EQ(tree.drawn_from(kPendingNode)->probabilities, q.probabilities);
}

}  // namespace
}  // namespace knap::acceptance_conditions_test
