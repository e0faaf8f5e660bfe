#include "decode/copies/copy_acceptance.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace knap {

namespace {

using Standing = CopyEvidence::Standing;

// The longest match length of each bin but the last.
constexpr std::array kLongest = {1, 2, 3, 4, 6, 9, 15};
// The belief before any observation in a token that leads, by kind of text, and how many
// observations it is worth. In prose they are below the mean over texts (`copies_bench`), because
// most right copies are in the few texts that repeat themselves, and those soon say so.
using Beliefs = std::array<double, kLongest.size() + 1>;
constexpr std::array<Beliefs, 4> kBeliefs = {{{0.2, 0.4, 0.5, 0.55, 0.6, 0.65, 0.75, 0.85},
                                              {0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9},
                                              {0.15, 0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6},
                                              {0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.97}}};
constexpr double kBeliefWeight = 8;
// What contradiction and agreement change, in log-odds.
constexpr double kContested = -1.1;
constexpr double kAgreed = 0.8;
// Of choices that are not the first, whatever the length.
constexpr double kSecond = 0.1;
constexpr double kRare = 0.03;
// Decay per observation, so that the table follows a change of style.
constexpr double kCopyMemory = 0.99;
// The most observations that those of earlier runs are worth: half of it once a request begins.
constexpr double kMostRecalledTokens = 24;

double shifted(double probability, double log_odds) {
    const double odds = probability / (1 - probability) * std::exp(log_odds);
    return odds / (1 + odds);
}

}  // namespace

std::size_t CopyAcceptance::bin(int match_length) {
    static_assert(kLongest.size() + 1 == kBins);
    const auto place = std::ranges::lower_bound(kLongest, match_length);
    return static_cast<std::size_t>(std::distance(kLongest.begin(), place));
}

double CopyAcceptance::belief(const CopyEvidence& evidence) const {
    const double leading = kBeliefs[static_cast<std::size_t>(kind_)][bin(evidence.length)];
    switch (evidence.standing) {
        case Standing::contested:
            return shifted(leading, kContested);
        case Standing::agreed:
            return shifted(leading, kAgreed);
        case Standing::second:
            return kSecond;
        case Standing::rare:
            return kRare;
        case Standing::leading:
            break;
    }
    return leading;
}

std::size_t CopyAcceptance::cell(const CopyEvidence& evidence) {
    return kBins * static_cast<std::size_t>(evidence.standing) + bin(evidence.length);
}

double CopyAcceptance::at(const CopyEvidence& evidence) const {
    const DraftCounts& count = seen_[cell(evidence)];
    return (count.right + kBeliefWeight * belief(evidence)) / (count.all + kBeliefWeight);
}

void CopyAcceptance::observe(const CopyEvidence& evidence, bool is_right) {
    DraftCounts& count = seen_[cell(evidence)];
    count.right = kCopyMemory * count.right + (is_right ? 1 : 0);
    count.all = kCopyMemory * count.all + 1;
    if (notes_ != nullptr) {
        (*notes_)[cell(evidence)].add({.right = is_right ? 1.0 : 0.0, .all = 1});
    }
}

void CopyAcceptance::recall(const Table& known) {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        seen_[i].add(known[i].at_most(kMostRecalledTokens));
    }
}

double CopyAcceptance::n_positions(const Table& table) {
    double n = 0;
    for (const Standing standing : {Standing::contested, Standing::leading, Standing::agreed}) {
        for (std::size_t bin = 0; bin < kBins; ++bin) {
            n += table[kBins * static_cast<std::size_t>(standing) + bin].all;
        }
    }
    return n;
}

int CopyAcceptance::longest_of(std::size_t bin) {
    return bin < kLongest.size() ? kLongest[bin] : std::numeric_limits<int>::max();
}

void CopyAcceptance::fade() {
    for (DraftCounts& count : seen_) {
        count.right /= 2;
        count.all /= 2;
    }
}

}  // namespace knap
