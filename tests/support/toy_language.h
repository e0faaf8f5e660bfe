// Languages of a few tokens, and decoding them with and without drafts: what acceptance rules are
// tested on, where whole distributions can be written down.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/draft_tree.h"

namespace knap::test {

using Text = std::vector<Token>;

// Probabilities that sum to 1: often with zeros, sometimes one-hot.
std::vector<double> random_probabilities(std::uint64_t seed, int n_vocab);
// Its tokens in the order that Distribution promises; zeros left out.
Distribution distribution_of(std::span<const double> probabilities);
// Logits whose softmax is `probabilities`; -infinity for zeros.
std::vector<float> logits_of(std::span<const double> probabilities);
// [n_vocab] the probability of each token.
std::vector<double> dense(const Distribution& distribution, int n_vocab);

// Logits that depend on the whole text, and on nothing else.
using Language = std::function<std::vector<float>(std::span<const Token> text)>;
Language random_language(std::uint64_t seed, int n_vocab, double spread = 3.0);
// Logits of `language`, each off by up to `error`.
Language imitation(const Language& language, std::uint64_t seed, double error);

// How many children a node is drafted (kPendingNode: the first drafts).
using Shape = std::function<int(const DraftTree& tree, int node)>;
Shape chain(int n_tokens);
Shape random_shape(std::uint64_t seed, int max_depth, int max_width);

std::string name_of(AcceptanceRule rule);  // "SharedNoise", for the names of tests

struct ToyRun {
    SamplingOptions sampling{};
    AcceptanceRule rule = AcceptanceRule::shared_noise;
    int n_vocab = 0;
    Language target{};
    Language draft{};
    Shape shape{};
    Text prompt{};
    int n_tokens = 0;
};

// The n_tokens that follow the prompt.
Text decode_plainly(const ToyRun& run);

struct ToyResult {
    Text text;
    int n_drafted = 0;  // first children
    int n_kept = 0;     // of first children
    int longest_path = 0;
};

ToyResult decode_speculatively(const ToyRun& run);

// A row for the pending token and for each node of the tree: what Acceptance::judge takes.
std::vector<float> rows_of(const Language& language, const DraftTree& tree, Text text);

// Pearson's statistic of counts against expected probabilities; infinite where the impossible
// happened.
double chi_square(std::span<const int> counts, std::span<const double> probabilities);
// Six deviations above the mean of that statistic: a right rule never reaches it with the few
// fixed seeds of a test.
double chi_square_bound(std::span<const double> probabilities);

}  // namespace knap::test
