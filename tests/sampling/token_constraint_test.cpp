// Under a constraint the whole model chooses as if every token that does not fit had a logit of
// -infinity from the start, and whatever is drafted, that choice stays.
#include "sampling/token_constraint.h"

#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "sampling/acceptance.h"
#include "sampling/sampler.h"
#include "support/fake_constraint.h"
#include "support/toy_language.h"

namespace knap::test::token_constraint_test {
namespace {

using ::testing::ElementsAre;

constexpr int kContext = 64;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_row(std::uint32_t seed, std::size_t n_vocab) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 2.0f);
    std::vector<float> logits(n_vocab);
    for (float& logit : logits) {
        logit = normal(random);
    }
    return logits;
}

std::vector<float> masked(std::vector<float> row, const FakeConstraint::Fits& fits) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (!fits({}, static_cast<Token>(i))) {
            row[i] = -kInfinity;
        }
    }
    return row;
}

// Greedy, sampled with and without cuts, with and without bias and penalties.
SamplingOptions options_of(std::uint64_t seed) {
    SamplingOptions options{.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = seed};
    options.temperature = seed % 4 == 0 ? 0.0f : 0.9f;
    if (seed % 4 == 2) {
        options.top_k = 1 + static_cast<int>(seed % 40);
    }
    if (seed % 4 == 3) {
        options.top_p = 0.8f;
        options.min_p = 0.02f;
    }
    if (seed % 3 == 0) {
        options.repeat_penalty = 1.3f;
        options.logit_bias = {{1, 2.5f}, {3, -1.5f}, {5, -kInfinity}};
    }
    return options;
}

struct MaskedCase {
    explicit MaskedCase(std::uint64_t seed)
        : options(options_of(seed)),
          n_vocab(seed % 3 == 0 ? 30 : 700),
          row(random_row(static_cast<std::uint32_t>(seed), n_vocab)),
          // Sometimes all but a few tokens are forbidden, so that the whole row is asked about.
          fits(random_constraint(seed, seed % 5 == 0 ? 0.99 : 0.5)),
          constraint(fits),
          constrained(options, static_cast<int>(n_vocab), kContext),
          plain(options, static_cast<int>(n_vocab), kContext) {
        for (const Token token : {3, 1, 4, 1}) {
            constrained.accept(token);
            plain.accept(token);
        }
        constrained.constrain(&constraint);
    }

    SamplingOptions options;
    std::size_t n_vocab;
    std::vector<float> row;
    FakeConstraint::Fits fits;
    FakeConstraint constraint;
    Sampler constrained;
    Sampler plain;
};

TEST(ConstrainedSampler, ChoosesAsIfTheOthersWereForbiddenFromTheStart) {
    int n_changed = 0;
    for (std::uint64_t seed = 0; seed < 1200; ++seed) {
        MaskedCase c(seed);
        const Token token = c.constrained.sample(c.row, 7);
        EXPECT_TRUE(c.fits({}, token)) << seed;
        ASSERT_EQ(token, c.plain.sample(masked(c.row, c.fits), 7)) << seed;
        n_changed += token != c.plain.sample(c.row, 7) ? 1 : 0;
    }
    EXPECT_GT(n_changed, 300);
    EXPECT_LT(n_changed, 1100);
}

TEST(ConstrainedSampler, MeasuresTheGapAmongTokensThatFit) {
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
        MaskedCase c(seed);
        const Choice choice = c.constrained.sample_with_gap(c.row, 7);
        const Choice expected = c.plain.sample_with_gap(masked(c.row, c.fits), 7);
        ASSERT_EQ(choice.token, expected.token) << seed;
        ASSERT_EQ(choice.gap, expected.gap) << seed;
    }
}

TEST(ConstrainedSampler, DistributesAmongTokensThatFit) {
    Distribution allowed;
    Distribution expected;
    for (std::uint64_t seed = 0; seed < 600; ++seed) {
        MaskedCase c(seed);
        c.constrained.allowed_distribution(c.row, allowed);
        c.plain.distribution(masked(c.row, c.fits), expected);
        ASSERT_EQ(allowed.tokens, expected.tokens) << seed;
        ASSERT_EQ(allowed.probabilities, expected.probabilities) << seed;
    }
}

TEST(ConstrainedSampler, LeavesTheDistributionOfDraftsAlone) {
    MaskedCase c(1);
    Distribution with;
    Distribution without;
    c.constrained.distribution(c.row, with);
    c.plain.distribution(c.row, without);
    EXPECT_EQ(with.tokens, without.tokens);
}

TEST(ConstrainedSampler, AsksAboutOneTokenWhenTheChoiceFits) {
    for (const float temperature : {0.0f, 1.0f}) {
        FakeConstraint all([](const std::vector<Token>&, Token) { return true; });
        Sampler sampler({.temperature = temperature, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f},
                        5000, kContext);
        sampler.constrain(&all);
        sampler.sample(random_row(1, 5000), 0);
        EXPECT_EQ(all.n_asked, 1) << temperature;
    }
}

TEST(ConstrainedSampler, AsksAboutFewTokensWhereFewCanBeDrawn) {
    FakeConstraint most([](const std::vector<Token>&, Token token) { return token % 5 != 0; });
    Sampler sampler({.temperature = 1.0f, .top_k = 40}, 5000, kContext);
    sampler.constrain(&most);
    sampler.sample(random_row(1, 5000), 0);
    EXPECT_LT(most.n_asked, 100);
}

TEST(ConstrainedSampler, SaysThatNothingFits) {
    FakeConstraint none([](const std::vector<Token>&, Token) { return false; });
    Sampler sampler({}, 100, kContext);
    sampler.constrain(&none);
    EXPECT_THROW(sampler.sample(random_row(1, 100), 0), Error);
}

TEST(ConstrainedSampler, AcceptsWhatWasDecidedOnce) {
    FakeConstraint all([](const std::vector<Token>&, Token) { return true; });
    Sampler sampler({}, 10, kContext);
    sampler.accept(9);
    sampler.constrain(&all);
    sampler.decide(1);
    sampler.decide(2);
    EXPECT_THAT(all.text, ElementsAre(1, 2));
    for (const Token token : {1, 2, 3}) {
        sampler.accept(token);
    }
    EXPECT_THAT(all.text, ElementsAre(1, 2, 3));
    sampler.extend(4);
    sampler.rewind(1);
    EXPECT_THAT(all.text, ElementsAre(1, 2, 3)) << "what may not stay is not the constraint's";
}

TEST(ConstrainedSampler, FailsWhenATokenTurnsOutNotToFit) {
    FakeConstraint none([](const std::vector<Token>&, Token) { return false; });
    Sampler sampler({}, 10, kContext);
    sampler.constrain(&none);
    EXPECT_THROW(sampler.accept(1), Error);
}

SamplingOptions warm(std::uint64_t seed) {
    return {.temperature = 0.9f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = seed};
}

// Chains and trees whose tokens may not fit, judged while the constraint moves along.
TEST(ConstrainedAcceptance, EmitsTheTokensOfPlainDecoding) {
    int longest_path = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        SamplingOptions sampling = seed % 3 == 0 ? SamplingOptions{} : warm(seed);
        sampling.top_k = seed % 5 == 0 ? 4 : 0;
        sampling.repeat_penalty = seed % 2 == 0 ? 1.3f : 1.0f;
        const Language target = random_language(seed, 12);
        const FakeConstraint constraint(random_constraint(seed, 0.4));
        const ToyRun run = {
            .sampling = sampling,
            .rule = seed % 4 < 2 ? AcceptanceRule::shared_noise : AcceptanceRule::equality,
            .n_vocab = 12,
            .target = target,
            .draft = imitation(target, seed + 1, 0.5),
            .shape = seed % 7 < 3 ? chain(static_cast<int>(seed % 7)) : random_shape(seed, 4, 3),
            .prompt = {1, 2, 3, 2},
            .n_tokens = 20,
            .constraint = &constraint};
        const ToyResult result = decode_speculatively(run);
        ASSERT_EQ(result.text, decode_plainly(run)) << seed;
        auto check = constraint.clone();
        for (const Token token : result.text) {
            ASSERT_TRUE(check->accept(token)) << seed;
        }
        longest_path = std::max(longest_path, result.longest_path);
    }
    EXPECT_GE(longest_path, 3);
}

// The ratio rule: the frequency of every text of two tokens is the plain one.
TEST(ConstrainedAcceptance, RatioRuleKeepsTheDistribution) {
    constexpr int kVocab = 5;
    constexpr int kTexts = 20000;
    for (std::uint64_t language = 0; language < 3; ++language) {
        const Language target = random_language(language, kVocab);
        const FakeConstraint constraint(random_constraint(language + 10, 0.4));
        ToyRun run = {.sampling = warm(0),
                      .rule = AcceptanceRule::ratio,
                      .n_vocab = kVocab,
                      .target = target,
                      .draft = imitation(target, language + 1, 1.0),
                      .shape = random_shape(language, 3, 3),
                      .prompt = {1},
                      .n_tokens = 2,
                      .constraint = &constraint};
        std::vector<double> law;
        Sampler sampler(warm(0), kVocab, kContext);
        Distribution p;
        for (Token first = 0; first < kVocab; ++first) {
            FakeConstraint place = constraint;
            sampler.constrain(&place);
            sampler.allowed_distribution(target(std::vector<Token>{1}), p);
            const double of_first = dense(p, kVocab)[static_cast<std::size_t>(first)];
            place.text = {first};
            sampler.allowed_distribution(target(std::vector<Token>{1, first}), p);
            for (const double of_second : dense(p, kVocab)) {
                law.push_back(of_first * of_second);
            }
        }
        std::vector<int> counts(law.size());
        for (int seed = 0; seed < kTexts; ++seed) {
            run.sampling = warm(static_cast<std::uint64_t>(seed));
            const Text text = decode_speculatively(run).text;
            ++counts[static_cast<std::size_t>(text[0] * kVocab + text[1])];
        }
        EXPECT_LT(chi_square(counts, law), chi_square_bound(law)) << language;
    }
}

TEST(ConstrainedAcceptance, AssumesNothingThatDoesNotFit) {
    FakeConstraint only_two([](const std::vector<Token>&, Token token) { return token == 2; });
    Sampler sampler({}, 4, kContext);
    sampler.constrain(&only_two);
    Acceptance acceptance(sampler, {.assumed_rate = 1.0});
    DraftTree tree;
    tree.set_chain(std::vector<Token>{2, 3});
    const Verdict& verdict = acceptance.judge(tree, std::vector<float>(12, 1.0f), 0);
    EXPECT_THAT(verdict.path, ElementsAre(0));
    EXPECT_EQ(verdict.next, 2);
}

}  // namespace
}  // namespace knap::test::token_constraint_test
