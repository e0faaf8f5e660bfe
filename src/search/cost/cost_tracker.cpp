#include "search/cost/cost_tracker.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/error.h"

namespace knap {

namespace {

constexpr int kDrafts = 0;  // the one group of drafts

// Times that differ from the prediction by more than this factor are ignored.
constexpr double kAbsurdRatio = 8;
// The largest factor by which one time can differ from the expected one; more is clipped.
constexpr double kLargestStep = 2;
// The mean of a group moves as if over this many times.
constexpr double kMeanOver = 16;
// The most times that count towards the confidence in a group's mean.
constexpr double kSurest = 64;
// What remains of the confidence in a group after an observation of another one.
constexpr double kFading = 0.99;
// The weight, in times, of the prior belief that a group's own factor is 1.
constexpr double kOwnPrior = 2;
// The same for the shared factor. It is larger: a single group has to be far off, or several groups
// alike, before other groups are corrected.
constexpr double kSharedPrior = 6;

}  // namespace

// The factors are the most probable ones if, in logarithms, the shared factor, the groups' own
// factors and the times around them are normally distributed. For a shared factor s, a group seen n
// times with mean m has its own factor n / (n + kOwnPrior) * (m - s), and s is the mean of all m,
// weighted by n * kOwnPrior / (n + kOwnPrior).
void RatioTracker::observe(int group, double measured_ms, double predicted_ms) {
    KNAP_ASSERT(group >= 0, "groups are counted from 0");
    const double ratio = measured_ms / predicted_ms;
    if (!(ratio >= 1 / kAbsurdRatio && ratio <= kAbsurdRatio)) {
        return;
    }
    const double expected = shared_log_ + own_log(group);
    const double step = std::log(kLargestStep);
    const double seen = std::clamp(std::log(ratio), expected - step, expected + step);

    const auto index = static_cast<std::size_t>(group);
    groups_.resize(std::max(groups_.size(), index + 1));
    Group& mine = groups_[index];
    const double n_seen = std::min(mine.n_seen + 1, kSurest);
    for (Group& each : groups_) {
        each.n_seen *= kFading;
    }
    mine.n_seen = n_seen;
    mine.mean += (seen - mine.mean) / std::min(mine.n_seen, kMeanOver);

    double sum = 0;
    double weights = kSharedPrior;
    for (const Group& each : groups_) {
        const double weight = each.n_seen * kOwnPrior / (each.n_seen + kOwnPrior);
        sum += weight * each.mean;
        weights += weight;
    }
    shared_log_ = sum / weights;
}

double RatioTracker::own_log(int group) const {
    const auto index = static_cast<std::size_t>(group);
    if (index >= groups_.size()) {
        return 0;
    }
    const auto [mean, n_seen] = groups_[index];
    return n_seen / (n_seen + kOwnPrior) * (mean - shared_log_);
}

double RatioTracker::factor(int group) const {
    return std::exp(shared_log_ + own_log(group));
}

double RatioTracker::own_factor(int group) const {
    return std::exp(own_log(group));
}

void CostTracker::observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms) {
    if (n_steps > 0) {
        drafts_.observe(kDrafts, ms, n_steps * model_.draft_step_ms(plan, n_context + n_steps / 2));
    }
}

void CostTracker::observe_verify(int n_rows, int n_context, double ms) {
    verifications_.observe(n_rows, ms, model_.verify_ms(n_rows, n_context));
}

double CostTracker::draft_step_ms(const ModulePlan& plan, int n_context) const {
    return drafts_.factor(kDrafts) * model_.draft_step_ms(plan, n_context);
}

double CostTracker::verify_ms(int n_rows, int n_context) const {
    return verifications_.factor(n_rows) * model_.verify_ms(n_rows, n_context);
}

// The cost of several rows relative to one is assumed to be the same for drafts and verifications.
double CostTracker::draft_pass_ms(const ModulePlan& plan, int n_context, int n_rows) const {
    const double rows_factor = verifications_.own_factor(n_rows) / verifications_.own_factor(1);
    return drafts_.factor(kDrafts) * rows_factor * model_.pass_ms(plan, n_context, n_rows);
}

int CostTracker::n_other_rows() const {
    return static_cast<int>(std::lround(others_.n_rows));
}

double CostTracker::plain_ms(double n_tokens, int n_context, const OtherWork& others) const {
    const int n_rows = 1 + static_cast<int>(std::lround(others.n_rows));
    return n_tokens * verify_ms(n_rows, n_context) / (1 + others.n_tokens);
}

double CostTracker::plain_tokens_per_ms(int n_context) const {
    return 1 / plain_ms(1, n_context, others_);
}

RoundCost CostTracker::round_cost(int n_context, int max_length) const {
    return {
        .verify_ms = corrected(model_.verify_times_ms(n_context, max_length, n_other_rows())),
        .n_other_tokens = others_.n_tokens,
    };
}

RoundCost CostTracker::round_cost(const ModulePlan& plan, int n_context, int max_length) const {
    RoundCost cost = model_.round_cost(plan, n_context, max_length, n_other_rows());
    cost.draft_step_ms *= drafts_.factor(kDrafts);
    cost.verify_ms = corrected(std::move(cost.verify_ms));
    cost.n_other_tokens = others_.n_tokens;
    return cost;
}

std::vector<double> CostTracker::corrected(std::vector<double> verify_ms) const {
    for (std::size_t length = 0; length < verify_ms.size(); ++length) {
        verify_ms[length] *= verifications_.factor(n_other_rows() + static_cast<int>(length) + 1);
    }
    return verify_ms;
}

}  // namespace knap
