#include "support/toy_language.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "base/hash.h"
#include "sampling/acceptance.h"
#include "sampling/draft_sampler.h"
#include "sampling/sampler.h"

namespace knap::test {

namespace {

constexpr int kContext = 64;

std::uint64_t hash_of(std::uint64_t seed, std::span<const Token> text) {
    std::uint64_t state = mix_in(0, seed);
    for (const Token token : text) {
        state = mix_in(state, static_cast<std::uint64_t>(token));
    }
    return state;
}

double uniform(std::uint64_t state, int i) {
    const std::uint64_t bits = mix_in(state, static_cast<std::uint64_t>(i)) >> 12;
    return static_cast<double>(bits) * 0x1p-52;
}

class Drafter {
  public:
    Drafter(const ToyRun& run, Sampler& sampler)
        : run_(run), sampler_(sampler), draft_sampler_(sampler, run.rule) {}

    const DraftTree& draft(Text& text) {
        tree_.clear();
        grow(kPendingNode, text);
        return tree_;
    }

  private:
    // Adds the children first, so that indices follow their order, then the children of each.
    void grow(int node, Text& text) {
        const int n_children = run_.shape(tree_, node);
        if (n_children == 0) {
            return;
        }
        const DraftChoice& choice = draft_sampler_.choose(
            run_.draft(text), static_cast<std::int64_t>(text.size()), n_children);
        std::vector<int> children;
        for (const Token token : choice.tokens) {
            children.push_back(tree_.add(token, node));
        }
        if (choice.is_drawn) {
            tree_.set_drawn_from(node, choice.q);
        }
        for (const int child : children) {
            text.push_back(tree_.token(child));
            sampler_.extend(tree_.token(child));
            grow(child, text);
            sampler_.rewind(1);
            text.pop_back();
        }
    }

    const ToyRun& run_;
    Sampler& sampler_;
    DraftSampler draft_sampler_;
    DraftTree tree_;
};

Sampler sampler_after_prompt(const ToyRun& run) {
    Sampler sampler(run.sampling, run.n_vocab, kContext);
    for (const Token token : run.prompt) {
        sampler.accept(token);
    }
    return sampler;
}

std::unique_ptr<TokenConstraint> constraint_of(const ToyRun& run) {
    return run.constraint == nullptr ? nullptr : run.constraint->clone();
}

}  // namespace

std::vector<double> random_probabilities(std::uint64_t seed, int n_vocab) {
    const std::uint64_t state = mix_in(0, seed);
    const double zero_share = uniform(state, -1) < 0.3 ? 0.6 : 0.1;
    std::vector<double> probabilities(static_cast<std::size_t>(n_vocab));
    for (int i = 0; i < n_vocab; ++i) {
        const bool is_zero = uniform(state, 1000 + i) < zero_share;
        probabilities[i] = is_zero ? 0.0 : -std::log(1.0 - uniform(state, i)) + 1e-3;
    }
    probabilities[static_cast<std::size_t>(uniform(state, -2) * n_vocab)] += 0.1;
    const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
    for (double& probability : probabilities) {
        probability /= total;
    }
    return probabilities;
}

Distribution distribution_of(std::span<const double> probabilities) {
    Distribution distribution;
    for (std::size_t i = 0; i < probabilities.size(); ++i) {
        if (probabilities[i] > 0.0) {
            distribution.tokens.push_back(static_cast<Token>(i));
        }
    }
    std::stable_sort(distribution.tokens.begin(), distribution.tokens.end(),
                     [&](Token a, Token b) { return probabilities[a] > probabilities[b]; });
    for (const Token token : distribution.tokens) {
        distribution.probabilities.push_back(static_cast<float>(probabilities[token]));
    }
    return distribution;
}

std::vector<float> logits_of(std::span<const double> probabilities) {
    std::vector<float> logits;
    for (const double probability : probabilities) {
        logits.push_back(static_cast<float>(std::log(probability)));
    }
    return logits;
}

std::vector<double> dense(const Distribution& distribution, int n_vocab) {
    std::vector<double> probabilities(static_cast<std::size_t>(n_vocab));
    double total = 0.0;
    for (const float probability : distribution.probabilities) {
        total += probability;
    }
    for (std::size_t i = 0; i < distribution.tokens.size(); ++i) {
        probabilities[distribution.tokens[i]] = distribution.probabilities[i] / total;
    }
    return probabilities;
}

Language random_language(std::uint64_t seed, int n_vocab, double spread) {
    return [=](std::span<const Token> text) {
        std::vector<float> logits(static_cast<std::size_t>(n_vocab));
        const std::uint64_t state = hash_of(seed, text);
        for (int i = 0; i < n_vocab; ++i) {
            logits[i] = static_cast<float>(spread * uniform(state, i));
        }
        return logits;
    };
}

Language imitation(const Language& language, std::uint64_t seed, double error) {
    return [=](std::span<const Token> text) {
        std::vector<float> logits = language(text);
        const std::uint64_t state = hash_of(seed, text);
        for (int i = 0; i < static_cast<int>(logits.size()); ++i) {
            logits[i] += static_cast<float>(error * (2 * uniform(state, i) - 1));
        }
        return logits;
    };
}

Shape chain(int n_tokens) {
    return [=](const DraftTree& tree, int node) {
        const int depth = node == kPendingNode ? 0 : tree.depth(node);
        return depth < n_tokens ? 1 : 0;
    };
}

Shape random_shape(std::uint64_t seed, int max_depth, int max_width) {
    return [=](const DraftTree& tree, int node) {
        const int depth = node == kPendingNode ? 0 : tree.depth(node);
        // Depends on indices, not on tokens: the shape is fixed before anything is drawn.
        const std::uint64_t state = mix_in(seed, row_of(node));
        const double wanted = uniform(state, tree.n_nodes()) * (max_width + 1);
        return depth < max_depth ? static_cast<int>(wanted) : 0;
    };
}

std::string name_of(AcceptanceRule rule) {
    switch (rule) {
        case AcceptanceRule::shared_noise:
            return "SharedNoise";
        case AcceptanceRule::ratio:
            return "Ratio";
        case AcceptanceRule::equality:
            return "Equality";
    }
    return {};
}

Text decode_plainly(const ToyRun& run) {
    Sampler sampler = sampler_after_prompt(run);
    const auto constraint = constraint_of(run);
    sampler.constrain(constraint.get());
    Text text = run.prompt;
    for (int i = 0; i < run.n_tokens; ++i) {
        text.push_back(sampler.sample(run.target(text), static_cast<std::int64_t>(text.size())));
        sampler.accept(text.back());
    }
    text.erase(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(run.prompt.size()));
    return text;
}

ToyResult decode_speculatively(const ToyRun& run) {
    Sampler sampler = sampler_after_prompt(run);
    const auto constraint = constraint_of(run);
    sampler.constrain(constraint.get());
    Drafter drafter(run, sampler);
    Acceptance acceptance(sampler, {.rule = run.rule});
    ToyResult result;
    Text text = run.prompt;
    const std::size_t n_wanted = run.prompt.size() + static_cast<std::size_t>(run.n_tokens);
    while (text.size() < n_wanted) {
        const DraftTree& tree = drafter.draft(text);
        const Verdict& verdict = acceptance.judge(tree, rows_of(run.target, tree, text),
                                                  static_cast<std::int64_t>(text.size()));
        result.n_drafted += tree.is_empty() ? 0 : 1;
        result.n_kept += !verdict.path.empty() && verdict.path.front() == 0 ? 1 : 0;
        result.longest_path = std::max(result.longest_path, static_cast<int>(verdict.path.size()));
        for (const int node : verdict.path) {
            text.push_back(tree.token(node));
        }
        text.push_back(verdict.next);
        for (std::size_t n = verdict.path.size() + 1; n > 0; --n) {
            sampler.accept(text[text.size() - n]);
        }
    }
    text.resize(n_wanted);
    result.text.assign(text.begin() + static_cast<std::ptrdiff_t>(run.prompt.size()), text.end());
    return result;
}

std::vector<float> rows_of(const Language& language, const DraftTree& tree, Text text) {
    std::vector<float> rows = language(text);
    const std::size_t n_text = text.size();
    for (int node = 0; node < tree.n_nodes(); ++node) {
        text.resize(n_text);
        for (int above = node; above != kPendingNode; above = tree.parent(above)) {
            text.insert(text.begin() + static_cast<std::ptrdiff_t>(n_text), tree.token(above));
        }
        const std::vector<float> row = language(text);
        rows.insert(rows.end(), row.begin(), row.end());
    }
    return rows;
}

double chi_square(std::span<const int> counts, std::span<const double> probabilities) {
    const double n = std::accumulate(counts.begin(), counts.end(), 0.0);
    double statistic = 0.0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double expected = n * probabilities[i];
        if (expected > 0.0) {
            statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
        } else if (counts[i] > 0) {
            return std::numeric_limits<double>::infinity();
        }
    }
    return statistic;
}

double chi_square_bound(std::span<const double> probabilities) {
    const auto n_possible = std::count_if(probabilities.begin(), probabilities.end(),
                                          [](double probability) { return probability > 0.0; });
    const double freedom = std::max<double>(1.0, static_cast<double>(n_possible) - 1.0);
    return freedom + 6 * std::sqrt(2 * freedom);
}

}  // namespace knap::test
