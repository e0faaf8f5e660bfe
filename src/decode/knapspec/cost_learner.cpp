#include "decode/knapspec/cost_learner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/quantile.h"
#include "decode/learned/learned.h"
#include "forward/forward.h"
#include "model/config.h"

namespace knap {

namespace {

// The first step includes building its graph; the median of three does not. On a machine that is
// never quiet, disturbed steps have to do.
constexpr int kFirstSteps = 3;
constexpr std::size_t kMostFirstSteps = 6;
// The most rows that a probe has; the cost of longer drafts is extrapolated.
constexpr int kMaxProbeRows = 8;
// After so many disturbed passes of several rows, the shortest of them is believed.
constexpr int kEnoughDisturbed = 4;
// The most rounds that the time of a verification in earlier runs is worth.
constexpr int kMostRecalledRounds = 4;
// After so many undisturbed verifications of a number of rows, their time is noted for later runs.
constexpr std::size_t kSteadyRounds = 16;
// What is measured again: a verification, and a draft step between the shortest window and the
// longest; so many times in a row, with a pause in refreshes after that, and with a share of what
// is left of the budget.
constexpr int kRecheckedRows = 4;
constexpr Window kRecheckedWindow{.sinks = 16, .recent = 256};
constexpr int kFirstRechecks = 6;
constexpr int kRecheckPause = 64;
constexpr double kRecheckShare = 0.25;

}  // namespace

CostLearner::CostLearner(const StrategyParts& parts)
    : measure_(parts.measure ? parts.measure
                             : [&forward = parts.forward](
                                   const Probe& probe) { return measure_pass(forward, probe); }),
      max_rows_(parts.max_rows),
      profile_(parts.profile),
      whole_model_(parts.config.n_layers),
      known_(parts.known),
      notes_(parts.notes),
      needs_probes_(parts.profile.is_partial) {
    if (can_fit(profile_)) {
        set_model();
    }
}

void CostLearner::set_model() {
    costs_.emplace(CostModel(profile_));
    steady_.clear();
    doubts_rows_ = knows_rows() && has_few_disturbed_rows();
    costs_->set_others(others_);
    recall();
}

bool CostLearner::has_few_disturbed_rows() const {
    int n_disturbed = 0;
    for (const CostSample& sample : profile_.samples) {
        if (sample.n_rows > 1 && sample.plan.is_full()) {
            n_disturbed += sample.was_busy ? sample.n_measured : kEnoughDisturbed;
        }
    }
    return n_disturbed < kEnoughDisturbed;
}

// The rounds of earlier runs correct the costs too: a profile may be older than they are.
void CostLearner::recall() {
    if (known_ == nullptr) {
        return;
    }
    for (const auto& [sample, run] : known_->costs) {
        const bool is_verification = sample.plan.is_full() && sample.has_head && !sample.was_busy;
        const int n_times = is_verification ? std::min(sample.n_measured, kMostRecalledRounds) : 0;
        for (int i = 0; i < n_times; ++i) {
            costs_->observe_verify(sample.n_rows, sample.n_context, sample.ms);
        }
    }
}

void CostLearner::set_others(const OtherWork& others) {
    others_ = others;
    if (costs_) {
        costs_->set_others(others);
    }
}

void CostLearner::observe_verify(int n_rows, int n_context, const PassTime& time) {
    if (!(std::isfinite(time.ms) && time.ms > 0)) {
        return;
    }
    if (!costs_ && n_rows == 1) {
        first_steps_.push_back(time);
        const auto n_quiet = std::ranges::count(first_steps_, false, &PassTime::was_disturbed);
        if (n_quiet >= kFirstSteps || first_steps_.size() >= kMostFirstSteps) {
            start(n_context);
        }
    } else if (costs_ && n_rows > 1 && (!knows_rows() || doubts_rows_)) {
        learn_pass({.plan = whole_model_,
                    .n_context = n_context,
                    .n_rows = n_rows,
                    .ms = time.ms,
                    .was_busy = time.was_disturbed});
    } else if (costs_) {
        costs_->observe_verify(n_rows, n_context, time.ms);
        if (!time.was_disturbed) {
            note_steady(n_rows, n_context, time.ms);
        }
    }
}

// Rounds measure verifications better than probes do, if there are many.
void CostLearner::note_steady(int n_rows, int n_context, double ms) {
    const double predicted_ms = costs_->model().verify_ms(n_rows, n_context);
    std::vector<double>& ratios = steady_[n_rows];
    ratios.push_back(ms / predicted_ms);
    if (ratios.size() < kSteadyRounds) {
        return;
    }
    if (notes_ != nullptr) {
        notes_->add_cost({.plan = whole_model_,
                          .n_context = n_context,
                          .n_rows = n_rows,
                          .ms = median(ratios) * predicted_ms,
                          .spread_ms = quartile_spread(ratios) * predicted_ms,
                          .n_measured = kMostRecalledRounds});
    }
    ratios.clear();
}

void CostLearner::observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms) {
    if (costs_) {
        costs_->observe_draft(plan, n_context, n_steps, ms);
    }
}

void CostLearner::start(int n_context) {
    profile_.samples.push_back(
        summary_of({.plan = whole_model_, .n_context = n_context}, first_steps_));
    profile_.samples.back().spread_ms = 0;  // the building of a graph is none
    if (notes_ != nullptr) {
        notes_->add_cost(profile_.samples.back());
    }
    set_model();
    plan_probes(n_context);
}

// The most informative ones that were not measured yet.
void CostLearner::plan_probes(int n_context) {
    needs_probes_ = false;
    probes_ = first_probes(profile_.layer_classes, n_context, std::min(max_rows_, kMaxProbeRows));
    std::erase_if(probes_, [this](const Probe& probe) { return is_known(probe); });
    std::ranges::reverse(probes_);
}

bool CostLearner::is_known(const Probe& probe) const {
    return std::ranges::any_of(profile_.samples, [&](const CostSample& sample) {
        return !sample.was_busy && sample.plan == probe.plan && sample.n_rows == probe.n_rows &&
               sample.has_head == probe.has_head;
    });
}

void CostLearner::learn_pass(const CostSample& sample) {
    if (is_plausible(sample, whole_model_.n_layers())) {
        add_measured(profile_, sample);
        set_model();
        if (notes_ != nullptr) {
            notes_->add_cost(sample);
        }
    }
}

double CostLearner::learn(int n_context, double budget_ms, double decisive_ms) {
    recheck_in_ = std::max(recheck_in_ - 1, 0);
    return measure_next(n_context, budget_ms, decisive_ms);
}

// A pause is counted in rounds: a server that nobody uses comes to rest.
double CostLearner::use_idle_time(int n_context) {
    return measure_next(n_context, std::numeric_limits<double>::infinity(), 0);
}

double CostLearner::measure_next(int n_context, double budget_ms, double decisive_ms) {
    if (!costs_) {
        return 0;
    }
    if (needs_probes_) {
        plan_probes(n_context);
    }
    // A round may have shown what a probe would.
    std::erase_if(probes_, [this](const Probe& probe) { return is_known(probe); });
    if (probes_.empty()) {
        return measure_again(n_context, budget_ms);
    }
    Probe probe = probes_.back();
    probe.n_context = n_context;
    const double predicted_ms = costs_->draft_pass_ms(probe.plan, n_context, probe.n_rows);
    if (predicted_ms > (is_decisive(probe) ? std::max(budget_ms, decisive_ms) : budget_ms)) {
        return 0;
    }
    const Stopwatch watch;
    const std::optional<PassTime> time = measure_(probe);
    if (!time) {
        return 0;
    }
    probes_.pop_back();
    const CostSample sample{.plan = probe.plan,
                            .n_context = n_context,
                            .n_rows = probe.n_rows,
                            .has_head = probe.has_head,
                            .ms = time->ms,
                            .was_busy = time->was_disturbed};
    learn_pass(sample);
    return std::max(watch.elapsed_ms(), time->ms);
}

// A time that was wrong when it was measured may be what keeps drafts from being tried, so that no
// round ever corrects it. So the two passes that decide are measured again, three times at first
// and then once in a while. A disturbed time counts only if it is shorter than expected.
double CostLearner::measure_again(int n_context, double budget_ms) {
    if (recheck_in_ > 0) {
        return 0;
    }
    const bool is_verification = n_rechecks_ % 2 == 0;
    const int n_rows = is_verification ? std::clamp(kRecheckedRows, 1, std::max(max_rows_, 1)) : 1;
    const Probe probe{.plan = is_verification
                                  ? whole_model_
                                  : uniform_window_plan(whole_model_.n_layers(), kRecheckedWindow),
                      .n_context = n_context,
                      .n_rows = n_rows};
    const double predicted_ms = costs_->draft_pass_ms(probe.plan, n_context, probe.n_rows);
    if (predicted_ms > kRecheckShare * budget_ms) {
        return 0;
    }
    const Stopwatch watch;
    const std::optional<PassTime> time = measure_(probe);
    if (!time) {
        return 0;
    }
    if (++n_rechecks_ % kFirstRechecks == 0) {
        recheck_in_ = kRecheckPause;
    }
    const bool counts = !time->was_disturbed || time->ms < predicted_ms;
    if (counts && is_verification) {
        costs_->observe_verify(n_rows, n_context, time->ms);
    } else if (counts) {
        costs_->observe_draft(probe.plan, n_context, 1, time->ms);
    }
    return std::max(watch.elapsed_ms(), time->ms);
}

}  // namespace knap
