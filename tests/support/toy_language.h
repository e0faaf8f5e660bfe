// Languages of a few tokens, decoded with and without drafts, for tests of acceptance rules. They
// are so small that whole distributions can be written down.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/draft_tree.h"
#include "sampling/token_constraint.h"

namespace knap::test {

using Text = std::vector<Token>;

// Probabilities that sum to 1, often with zeros, sometimes one-hot.
std::vector<double> random_probabilities(std::uint64_t seed, int n_vocab);
// The tokens in the order that Distribution requires, without zeros.
Distribution distribution_of(std::span<const double> probabilities);
// Logits whose softmax is `probabilities`; -infinity for zeros.
std::vector<float> logits_of(std::span<const double> probabilities);
// [n_vocab] the probability of each token.
std::vector<double> dense(const Distribution& distribution, int n_vocab);

// Logits that depend only on the whole text.
using Language = std::function<std::vector<float>(std::span<const Token> text)>;
Language random_language(std::uint64_t seed, int n_vocab, double spread = 3.0);
// Logits of `language`, each off by up to `error`.
Language imitation(const Language& language, std::uint64_t seed, double error);

// The number of children to draft for a node (kPendingNode: the first drafts).
using Shape = std::function<int(const DraftTree& tree, int node)>;
Shape chain(int n_tokens);
Shape random_shape(std::uint64_t seed, int max_depth, int max_width);

std::string name_of(AcceptanceRule rule);  // for test names, such as "SharedNoise"

struct ToyRun {
    SamplingOptions sampling{};
    AcceptanceRule rule = AcceptanceRule::shared_noise;
    int n_vocab = 0;
    Language target{};
    Language draft{};
    Shape shape{};
    Text prompt{};
    int n_tokens = 0;
    // Of the text after the prompt; null: none. Drafts do not know it.
    const TokenConstraint* constraint = nullptr;
};

// The n_tokens tokens after the prompt.
Text decode_plainly(const ToyRun& run);

struct ToyResult {
    Text text;
    int n_drafted = 0;  // first children
    int n_kept = 0;     // of the first children
    int longest_path = 0;
};

ToyResult decode_speculatively(const ToyRun& run);

// A row for the pending token and for each node of the tree, as Acceptance::judge takes them.
std::vector<float> rows_of(const Language& language, const DraftTree& tree, Text text);

// Pearson's chi-square statistic; infinite when something impossible was counted.
double chi_square(std::span<const int> counts, std::span<const double> probabilities);
// Six deviations above the mean of the statistic. With the few fixed seeds of a test, a correct
// rule never reaches it.
double chi_square_bound(std::span<const double> probabilities);

}  // namespace knap::test
