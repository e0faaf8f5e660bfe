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
// With windows of 128 and 512 on three documents, 13 to 64 % of second candidates were right where
// the first was not.
constexpr double kSecondRate = 0.4;
constexpr double kSecondWeight = 8;
// The most drafts that replays are worth: they are evidence from first drafts, not from the rounds
// themselves.
constexpr double kMaxReplayWeight = 12;

}  // namespace

void PlanAcceptance::Count::add(bool is_right) {
    right = kPlanMemory * right + (is_right ? 1 : 0);
    all = kPlanMemory * all + 1;
}

double PlanAcceptance::Count::shrunk(double rate, double weight) const {
    return (right + weight * rate) / (all + weight);
}

void PlanAcceptance::Count::limit(double weight) {
    if (all > weight) {
        right *= weight / all;
        all = weight;
    }
}

void PlanAcceptance::replay(double n_agreed, double n_rows) {
    replayed_.right += n_agreed;
    replayed_.all += n_rows;
    replayed_.limit(kMaxReplayWeight);
}

AcceptancePrior PlanAcceptance::evidence() const {
    return {.accepted = total_.right + replayed_.right,
            .rejected = total_.all + replayed_.all - total_.right - replayed_.right};
}

void PlanAcceptance::fade(double n_drafts) {
    const AcceptancePrior seen = evidence();
    const Count seconds = seconds_;
    *this = PlanAcceptance(belief_);
    seconds_ = seconds;
    seconds_.limit(n_drafts);
    replayed_ = {.right = seen.accepted, .all = seen.accepted + seen.rejected};
    replayed_.limit(n_drafts);
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
    const AcceptancePrior seen = evidence();
    const double accepted = seen.accepted + belief_.accepted;
    return accepted / (accepted + seen.rejected + belief_.rejected);
}

double PlanAcceptance::rate_of_seconds() const {
    return seconds_.shrunk(kSecondRate, kSecondWeight);
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
