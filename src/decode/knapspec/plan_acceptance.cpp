#include "decode/knapspec/plan_acceptance.h"

#include <algorithm>
#include <cstddef>

namespace knap {

namespace {

// Decay per observation: a count remembers about 1 / (1 - kPlanMemory) of them.
constexpr double kPlanMemory = 0.99;
// How many observations a prior is worth: for each position, the rate of all positions; for each
// bin of confidences, the confidence itself.
constexpr double kDepthWeight = 6;
constexpr double kBinWeight = 4;
// The most drafts that a belief with replays is worth: replayed rows are evidence from first
// drafts, not from the rounds themselves.
constexpr double kMaxReplayWeight = 16;

}  // namespace

void PlanAcceptance::Count::add(bool is_right) {
    right = kPlanMemory * right + (is_right ? 1 : 0);
    all = kPlanMemory * all + 1;
}

double PlanAcceptance::Count::shrunk(double rate, double weight) const {
    return (right + weight * rate) / (all + weight);
}

void PlanAcceptance::replay(double agreed, int n_rows) {
    const double n_believed = belief_.accepted + belief_.rejected;
    const double rate = (agreed + belief_.accepted) / (n_rows + n_believed);
    belief_ = prior_of(rate, std::min(n_rows + n_believed, kMaxReplayWeight));
}

void PlanAcceptance::observe(int n_drafted, int n_accepted, std::span<const float> confidences) {
    // Drafts after the first rejected one were never judged.
    const int n_judged = std::min(n_drafted, n_accepted + 1);
    for (int i = 0; i < n_judged; ++i) {
        const auto place = static_cast<std::size_t>(i);
        const bool is_right = i < n_accepted;
        total_.add(is_right);
        if (place >= by_depth_.size()) {
            by_depth_.emplace_back();
        }
        by_depth_[place].add(is_right);
        if (place < confidences.size()) {
            by_confidence_[MarginalRule::bin_of(confidences[place])].add(is_right);
        }
    }
}

double PlanAcceptance::rate() const {
    return (total_.right + belief_.accepted) / (total_.all + belief_.accepted + belief_.rejected);
}

AcceptanceByDepth PlanAcceptance::by_depth() const {
    AcceptanceByDepth acceptance{.rest = rate()};
    for (const Count& count : by_depth_) {
        acceptance.first.push_back(count.shrunk(acceptance.rest, kDepthWeight));
    }
    return acceptance;
}

std::array<double, MarginalRule::kBins> PlanAcceptance::by_confidence() const {
    std::array<double, MarginalRule::kBins> acceptance{};
    for (std::size_t i = 0; i < acceptance.size(); ++i) {
        const double middle = (static_cast<double>(i) + 0.5) / MarginalRule::kBins;
        acceptance[i] = by_confidence_[i].shrunk(middle, kBinWeight);
    }
    return acceptance;
}

}  // namespace knap
