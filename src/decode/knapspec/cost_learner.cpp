#include "decode/knapspec/cost_learner.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/quantile.h"
#include "forward/forward.h"
#include "model/config.h"

namespace knap {

namespace {

// The first step includes building its graph; the median of three does not.
constexpr std::size_t kFirstSteps = 3;
// The most rows that a probe has; the cost of longer drafts is extrapolated.
constexpr int kMaxProbeRows = 8;

}  // namespace

CostLearner::CostLearner(const StrategyParts& parts)
    : forward_(parts.forward),
      max_rows_(parts.max_rows),
      profile_(parts.profile),
      whole_model_(parts.config.n_layers) {
    if (can_fit(profile_)) {
        set_model();
    }
}

void CostLearner::set_model() {
    costs_.emplace(CostModel(profile_));
    costs_->set_others(others_);
}

void CostLearner::set_others(const OtherWork& others) {
    others_ = others;
    if (costs_) {
        costs_->set_others(others);
    }
}

void CostLearner::observe_verify(int n_rows, int n_context, double ms) {
    if (!costs_ && n_rows == 1 && std::isfinite(ms) && ms > 0) {
        first_steps_ms_.push_back(ms);
        if (first_steps_ms_.size() >= kFirstSteps) {
            start(n_context);
        }
    } else if (costs_ && n_rows > 1 && !knows_rows()) {
        learn_pass({.plan = whole_model_, .n_context = n_context, .n_rows = n_rows, .ms = ms});
    } else if (costs_) {
        costs_->observe_verify(n_rows, n_context, ms);
    }
}

void CostLearner::observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms) {
    if (costs_) {
        costs_->observe_draft(plan, n_context, n_steps, ms);
    }
}

void CostLearner::start(int n_context) {
    profile_.samples.push_back(
        {.plan = whole_model_, .n_context = n_context, .ms = median(first_steps_ms_)});
    probes_ = first_probes(profile_.layer_classes, n_context, std::min(max_rows_, kMaxProbeRows));
    probes_.erase(probes_.begin());  // the plain step, which has just been measured
    std::ranges::reverse(probes_);
    set_model();
}

void CostLearner::learn_pass(const CostSample& sample) {
    if (is_plausible(sample, whole_model_.n_layers())) {
        profile_.samples.push_back(sample);
        set_model();
    }
}

double CostLearner::learn(int n_context, double budget_ms) {
    if (probes_.empty() || !costs_) {
        return 0;
    }
    Probe probe = probes_.back();
    probe.n_context = n_context;
    const double predicted_ms = costs_->draft_pass_ms(probe.plan, n_context, probe.n_rows);
    if (predicted_ms > budget_ms) {
        return 0;
    }
    const Stopwatch watch;
    const std::optional<double> ms = measure_ms(forward_, probe);
    if (!ms) {
        return 0;
    }
    probes_.pop_back();
    learn_pass({.plan = probe.plan,
                .n_context = n_context,
                .n_rows = probe.n_rows,
                .has_head = probe.has_head,
                .ms = *ms});
    return watch.elapsed_ms();
}

}  // namespace knap
