#include "sampling/ratio_rule.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "support/toy_language.h"

namespace knap::ratio_rule_test {
namespace {

using test::dense;
using test::distribution_of;
using test::random_probabilities;
using test::Text;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

// The probability of every possible text.
using Law = std::map<Text, double>;

// The shape of a tree.
struct Branch {
    std::vector<Branch> children;
};

Branch chain(int n_tokens) {
    return n_tokens == 0 ? Branch{} : Branch{{chain(n_tokens - 1)}};
}

Branch random_branch(std::uint64_t seed, int max_depth, int max_width) {
    Branch branch;
    const auto n_children =
        max_depth == 0 ? 0 : mix_in(seed, 0) % (static_cast<std::uint64_t>(max_width) + 1);
    for (std::uint64_t i = 0; i < n_children; ++i) {
        branch.children.push_back(random_branch(mix_in(seed, i + 1), max_depth - 1, max_width));
    }
    return branch;
}

// Distributions of the whole model and of the draft, which depend on the text.
struct Models {
    int n_vocab;
    std::function<Distribution(const Text&)> target;
    std::function<Distribution(const Text&)> draft;
    bool is_drawn;  // otherwise siblings are chosen deterministically
    // How many of a node's children are tried, given the probability of the first; empty: all.
    std::function<std::size_t(double first)> width{};
};

Models random_models(std::uint64_t seed, int n_vocab, bool is_drawn) {
    const auto distribution = [=](const Text& text, std::uint64_t side) {
        std::uint64_t state = seed;
        for (const Token token : text) {
            state = mix_in(state, static_cast<std::uint64_t>(token));
        }
        // For every fourth text the two distributions are equal.
        const bool is_equal = mix_in(state, 99) % 4 == 0;
        return distribution_of(random_probabilities(mix_in(state, is_equal ? 0 : side), n_vocab));
    };
    return {.n_vocab = n_vocab,
            .target = [=](const Text& text) { return distribution(text, 1); },
            .draft = [=](const Text& text) { return distribution(text, 2); },
            .is_drawn = is_drawn};
}

// Sums over every possible draft and every outcome of acceptance in one round.
class Round {
  public:
    Round(const Models& models, Law& law) : models_(models), law_(law) {}

    void run(const Text& text, const Branch& branch, double probability) {
        const Distribution q = models_.draft(text);
        RatioTrial trial;
        trial.start(models_.target(text), models_.is_drawn ? &q : nullptr, models_.n_vocab);
        try_sibling(text, branch.children, 0, dense(q, models_.n_vocab), trial, probability);
    }

  private:
    // The next sibling is drawn from `q`, which is computed here independently.
    void try_sibling(const Text& text,
                     std::span<const Branch> siblings,
                     std::size_t sibling,
                     const std::vector<double>& q,
                     const RatioTrial& trial,
                     double probability) {
        const std::vector<Draft> drafts = possible_drafts(q);
        if (sibling == siblings.size() || drafts.empty()) {
            for (std::size_t i = 0; i < trial.tokens().size(); ++i) {
                law_[with(text, trial.tokens()[i])] += probability * trial.remaining()[i];
            }
            return;
        }
        for (const auto& [draft, drawn] : drafts) {
            const double kept = trial.keep_probability(draft);
            if (kept > 0.0) {
                run(with(text, draft), siblings[sibling], probability * drawn * kept);
            }
            RatioTrial rejected = trial;
            rejected.reject(draft);
            std::vector<double> rest = q;
            rest[draft] = 0.0;
            const std::size_t n_tried = sibling == 0 ? width(siblings, q[draft]) : siblings.size();
            try_sibling(text, siblings.first(n_tried), sibling + 1, rest, rejected,
                        probability * drawn * (1.0 - kept));
        }
    }

    std::size_t width(std::span<const Branch> siblings, double first) const {
        return models_.width ? std::min(siblings.size(), models_.width(first)) : siblings.size();
    }

    struct Draft {
        Token token;
        double probability;  // of being the next sibling
    };

    // Draws from the rest of q, or its most probable token when drafts are deterministic.
    std::vector<Draft> possible_drafts(const std::vector<double>& q) const {
        const double total = std::accumulate(q.begin(), q.end(), 0.0);
        if (total == 0.0) {
            return {};
        }
        if (!models_.is_drawn) {
            const auto best = std::max_element(q.begin(), q.end());
            return {{static_cast<Token>(best - q.begin()), 1.0}};
        }
        std::vector<Draft> drafts;
        for (Token token = 0; token < models_.n_vocab; ++token) {
            if (q[token] > 0.0) {
                drafts.push_back({token, q[token] / total});
            }
        }
        return drafts;
    }

    static Text with(Text text, Token token) {
        text.push_back(token);
        return text;
    }

    const Models& models_;
    Law& law_;
};

// The distribution of the first n_tokens tokens, over as many rounds as needed.
Law law_of_rounds(const Models& models,
                  const std::function<Branch(const Text&)>& shape,
                  std::size_t n_tokens) {
    Law open = {{Text{}, 1.0}};
    Law done;
    while (!open.empty()) {
        Law emitted;
        for (const auto& [text, probability] : open) {
            Round(models, emitted).run(text, shape(text), probability);
        }
        open.clear();
        for (const auto& [text, probability] : emitted) {
            if (text.size() < n_tokens) {
                open[text] += probability;
            } else {
                done[Text(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_tokens))] +=
                    probability;
            }
        }
    }
    return done;
}

// Compares `law` with the distribution of plain decoding.
void expect_plain_law(const Models& models, const Law& law, std::size_t n_tokens) {
    Law plain = {{Text{}, 1.0}};
    for (std::size_t i = 0; i < n_tokens; ++i) {
        Law longer;
        for (const auto& [text, probability] : plain) {
            const std::vector<double> p = dense(models.target(text), models.n_vocab);
            for (Token token = 0; token < models.n_vocab; ++token) {
                Text next = text;
                next.push_back(token);
                longer[next] = probability * p[token];
            }
        }
        plain = longer;
    }
    for (const auto& [text, probability] : plain) {
        const auto found = law.find(text);
        ASSERT_NEAR(found == law.end() ? 0.0 : found->second, probability, 1e-12)
            << ::testing::PrintToString(text);
    }
}

void expect_exact(const Models& models,
                  const std::function<Branch(const Text&)>& shape,
                  std::size_t n_tokens) {
    expect_plain_law(models, law_of_rounds(models, shape, n_tokens), n_tokens);
}

class RatioRuleLaw : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Drafts, RatioRuleLaw, ::testing::Bool(), [](const auto& tested) {
    return tested.param ? "Drawn" : "Chosen";
});

TEST_P(RatioRuleLaw, OfChainsIsPlainDecoding) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const int n_vocab = 2 + static_cast<int>(seed % 4);
        const Models models = random_models(seed, n_vocab, GetParam());
        for (int n_drafted = 0; n_drafted <= 3; ++n_drafted) {
            SCOPED_TRACE(seed);
            expect_exact(
                models, [&](const Text&) { return chain(n_drafted); }, n_vocab <= 3 ? 4 : 3);
        }
    }
}

// The residual after the first candidate does not depend on which token it was. So that token may
// determine how many siblings are tried.
TEST_P(RatioRuleLaw, OfTreesWhoseWidthDependsOnTheFirstCandidateIsPlainDecoding) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        SCOPED_TRACE(seed);
        const int n_vocab = 2 + static_cast<int>(seed % 3);
        Models models = random_models(seed, n_vocab, GetParam());
        models.width = [](double first) -> std::size_t {
            return first > 0.6 ? 1 : first > 0.3 ? 2 : 4;
        };
        const Branch fan{{chain(1), {}, {}, {}}};
        expect_exact(
            models, [&](const Text&) { return fan; }, 2);
    }
}

TEST_P(RatioRuleLaw, OfTreesIsPlainDecoding) {
    for (std::uint64_t seed = 0; seed < 120; ++seed) {
        const int n_vocab = 2 + static_cast<int>(seed % 4);
        const Models models = random_models(seed, n_vocab, GetParam());
        // A different tree in each round.
        const auto shape = [&](const Text& text) {
            return random_branch(mix_in(seed, text.size()), 2, 3);
        };
        SCOPED_TRACE(seed);
        expect_exact(models, shape, n_vocab <= 3 ? 3 : 2);
    }
}

TEST(RatioRule, AcceptanceIsOneMinusTheTotalVariation) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const Models models = random_models(seed, 5, true);
        const Distribution p = models.target({});
        const Distribution q = models.draft({});
        RatioTrial trial;
        trial.start(p, &q, 5);
        const std::vector<double> dense_p = dense(p, 5);
        const std::vector<double> dense_q = dense(q, 5);
        double kept = 0.0;
        double overlap = 0.0;
        for (Token token = 0; token < 5; ++token) {
            overlap += std::min(dense_p[token], dense_q[token]);
            kept += dense_q[token] > 0.0 ? dense_q[token] * trial.keep_probability(token) : 0.0;
        }
        EXPECT_NEAR(kept, overlap, 1e-12);
    }
}

TEST(RatioRule, KeepProbabilityIsAtMostOne) {
    EXPECT_EQ(keep_probability(0.2, 0.4), 0.5);
    EXPECT_EQ(keep_probability(0.4, 0.2), 1.0);
    EXPECT_EQ(keep_probability(0.0, 0.2), 0.0);
}

TEST(RatioRule, ResidualIsThePartOfPAboveQ) {
    std::vector<double> p = {0.5, 0.3, 0.2};
    leave_residual(p, std::vector<double>{0.2, 0.2, 0.6});
    EXPECT_THAT(p, ElementsAre(DoubleNear(0.75, 1e-15), DoubleNear(0.25, 1e-15), 0.0));
}

TEST(RatioRule, ExcludeKeepsTheProportionsOfTheRest) {
    std::vector<double> q = {0.5, 0.3, 0.2};
    exclude(q, 0);
    EXPECT_THAT(q, ElementsAre(0.0, DoubleNear(0.6, 1e-15), DoubleNear(0.4, 1e-15)));
}

// One minus the entry would be 0 here.
TEST(RatioRule, ExcludeKeepsWhatIsTinyBesideOne) {
    std::vector<double> q = {1.0, 1e-30, 3e-30};
    exclude(q, 0);
    EXPECT_THAT(q, ElementsAre(0.0, DoubleNear(0.25, 1e-15), DoubleNear(0.75, 1e-15)));
}

TEST(RatioRule, ATrialForgetsThePreviousOne) {
    const Distribution first = distribution_of(std::vector{0.25, 0.25, 0.25, 0.25});
    const Distribution second = distribution_of(std::vector{0.0, 0.5, 0.0, 0.5});
    RatioTrial trial;
    trial.start(first, &first, 4);
    trial.reject(2);
    trial.start(second, nullptr, 4);
    EXPECT_EQ(trial.keep_probability(0), 0.0);
    EXPECT_EQ(trial.keep_probability(1), 0.5);
    EXPECT_THAT(trial.tokens(), ElementsAre(1, 3));
    EXPECT_THAT(trial.remaining(), ElementsAre(0.5, 0.5));
}

}  // namespace
}  // namespace knap::ratio_rule_test
