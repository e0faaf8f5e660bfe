#include "decode/knapspec/match_acceptance.h"

#include <algorithm>
#include <iterator>

namespace knap {

namespace {

// The longest match length of each bin but the last.
constexpr std::array kLongest = {2, 3, 4, 6, 9, 15};
// The belief before any observation, and how many observations it is worth. Copies after short
// matches are mostly wrong in prose, and long matches mostly continue.
constexpr std::array kBelief = {0.2, 0.35, 0.45, 0.55, 0.7, 0.8, 0.9};
constexpr double kBeliefWeight = 8;
// Decay per observation, so that the table follows a change of style.
constexpr double kMatchMemory = 0.99;

}  // namespace

MatchAcceptance::MatchAcceptance() {
    static_assert(kBelief.size() == kBins && kLongest.size() + 1 == kBins);
}

std::size_t MatchAcceptance::bin(int match_length) {
    const auto place = std::ranges::lower_bound(kLongest, match_length);
    return static_cast<std::size_t>(std::distance(kLongest.begin(), place));
}

double MatchAcceptance::at(int match_length) const {
    const std::size_t i = bin(match_length);
    return (seen_[i].right + kBeliefWeight * kBelief[i]) / (seen_[i].all + kBeliefWeight);
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
