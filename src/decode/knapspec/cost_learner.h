// What passes cost, learned while a request runs: from a saved profile where there is one, else
// from the steps of plain decoding and from a few passes of its own that the search budget pays
// for. Corrected by every round.
#pragma once

#include <optional>
#include <vector>

#include "decode/strategy.h"
#include "search/cost/cost_tracker.h"
#include "search/cost/profile.h"

namespace knap {

class CostLearner {
  public:
    // Everything in `parts` outlives it.
    explicit CostLearner(const StrategyParts& parts);

    // Null until a step of plain decoding was seen, or a profile was given.
    const CostTracker* costs() const { return costs_ ? &*costs_ : nullptr; }
    // Whether the prices of rows were measured: before that, drafting is a guess.
    bool knows_rows() const { return costs_ && costs_->model().knows_rows(); }

    // A round's verification of `n_rows` rows after `n_context` committed ones.
    void observe_verify(int n_rows, int n_context, double ms);
    void observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms);

    // Measures one more pass where its predicted time fits `budget_ms`. The time spent; 0: there is
    // nothing left to measure, or no time for it.
    double learn(int n_context, double budget_ms);

  private:
    void start(int n_context);
    void learn_pass(const CostSample& sample);

    Forward& forward_;
    int max_rows_;
    CostProfile profile_;
    ModulePlan whole_model_;
    std::optional<CostTracker> costs_;
    std::vector<double> first_steps_ms_;  // of plain decoding, while nothing else is known
    std::vector<Probe> probes_;           // to be measured, the next one last
};

}  // namespace knap
