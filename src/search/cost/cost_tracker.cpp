#include "search/cost/cost_tracker.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/error.h"

namespace knap {

namespace {

constexpr int kDrafts = 0;  // the one group of drafts

// A time further than this from what was predicted, either way, is not believed.
constexpr double kAbsurdRatio = 8;
// What one time may say at most against what was expected.
constexpr double kLargestStep = 2;
// A mean follows its group as if it were one of so many times.
constexpr double kMeanOver = 16;
// More than so many times do not make a group's mean surer.
constexpr double kSurest = 64;
// What a group keeps of its sureness when another one is seen.
constexpr double kFading = 0.99;
// Times that a group's own factor has to stand against, being 1 ...
constexpr double kOwnPrior = 2;
// ... and those that the shared one has to: a single group has to be wrong by much, or several of
// them alike, before others are thought to be wrong.
constexpr double kSharedPrior = 6;

}  // namespace

// The factors are the most likely ones when, in logarithms, the shared factor, the groups' own ones
// and the times about them are spread as normal distributions are: for a shared factor s, a group
// seen n times with mean m has n / (n + kOwnPrior) * (m - s) of its own, and s is the mean of all
// m, each weighed with n * kOwnPrior / (n + kOwnPrior).
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

// What several rows cost more than one is the same for whoever runs them.
double CostTracker::draft_pass_ms(const ModulePlan& plan, int n_context, int n_rows) const {
    const double rows_factor = verifications_.own_factor(n_rows) / verifications_.own_factor(1);
    return drafts_.factor(kDrafts) * rows_factor * model_.pass_ms(plan, n_context, n_rows);
}

std::vector<double> CostTracker::verify_times_ms(int n_context, int max_length) const {
    return corrected(model_.verify_times_ms(n_context, max_length));
}

RoundCost CostTracker::round_cost(const ModulePlan& plan, int n_context, int max_length) const {
    RoundCost cost = model_.round_cost(plan, n_context, max_length);
    cost.draft_step_ms *= drafts_.factor(kDrafts);
    cost.verify_ms = corrected(std::move(cost.verify_ms));
    return cost;
}

std::vector<double> CostTracker::corrected(std::vector<double> verify_ms) const {
    for (std::size_t length = 0; length < verify_ms.size(); ++length) {
        verify_ms[length] *= verifications_.factor(static_cast<int>(length) + 1);
    }
    return verify_ms;
}

}  // namespace knap
