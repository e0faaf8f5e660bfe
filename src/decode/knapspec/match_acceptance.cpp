#include "decode/knapspec/match_acceptance.h"

#include <algorithm>
#include <iterator>

namespace knap {

namespace {

// The longest match length of each bin but the last.
constexpr std::array kLongest = {2, 3, 4, 6, 9, 15};
// The belief before any observation, by kind of text, and how many observations it is worth. Copies
// after short matches are mostly wrong in prose, and long matches mostly continue.
using Beliefs = std::array<double, kLongest.size() + 1>;
constexpr std::array<Beliefs, 4> kBeliefs = {{{0.2, 0.35, 0.45, 0.55, 0.7, 0.8, 0.9},
                                              {0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9},
                                              {0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6},
                                              {0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97}}};
constexpr double kBeliefWeight = 8;
// Decay per observation, so that the table follows a change of style.
constexpr double kMatchMemory = 0.99;

}  // namespace

MatchAcceptance::MatchAcceptance(CopiedText kind) : kind_(kind) {
    static_assert(kLongest.size() + 1 == kBins);
}

double MatchAcceptance::belief(std::size_t bin) const {
    return kBeliefs[static_cast<std::size_t>(kind_)][bin];
}

std::size_t MatchAcceptance::bin(int match_length) {
    const auto place = std::ranges::lower_bound(kLongest, match_length);
    return static_cast<std::size_t>(std::distance(kLongest.begin(), place));
}

double MatchAcceptance::at(int match_length) const {
    const std::size_t i = bin(match_length);
    return (seen_[i].right + kBeliefWeight * belief(i)) / (seen_[i].all + kBeliefWeight);
}

AcceptanceByDepth MatchAcceptance::of_copy(int match_length, int n_tokens) const {
    AcceptanceByDepth acceptance;
    for (int i = 0; i < n_tokens; ++i) {
        acceptance.first.push_back(at(match_length + i));
    }
    return acceptance;
}

void MatchAcceptance::observe(int match_length, bool is_right) {
    Count& count = seen_[bin(match_length)];
    count.right = kMatchMemory * count.right + (is_right ? 1 : 0);
    count.all = kMatchMemory * count.all + 1;
}

void MatchAcceptance::fade() {
    for (Count& count : seen_) {
        count.right /= 2;
        count.all /= 2;
    }
}

}  // namespace knap
