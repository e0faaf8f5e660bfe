// Learns the cost of passes while requests run: from a saved profile if there is one, otherwise
// from steps of plain decoding and a few measured passes that the search budget pays for. Every
// round corrects it (docs/methods.md, "Measured costs").
#pragma once

#include <optional>
#include <vector>

#include "decode/strategy.h"
#include "search/cost/cost_tracker.h"
#include "search/cost/profile.h"

namespace knap {

class CostLearner {
  public:
    // Everything in `parts` must outlive the object.
    explicit CostLearner(const StrategyParts& parts);

    // Null until a few steps of plain decoding were timed, unless there is a profile.
    const CostTracker* costs() const { return costs_ ? &*costs_ : nullptr; }
    // Whether the cost of several rows was measured. Before that, the cost of a draft is unknown.
    bool knows_rows() const { return costs_ && costs_->model().knows_rows(); }

    // Records the time of a pass over `n_rows` rows after `n_context` committed ones, those of
    // other sessions included.
    void observe_verify(int n_rows, int n_context, double ms);
    // What other sessions are expected to have in the passes that verify.
    void set_others(const OtherWork& others);
    void observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms);

    // Measures one more pass if its predicted time fits `budget_ms`. Returns the time spent; 0 if
    // nothing is left to measure, there is no time for it, or it was cancelled.
    double learn(int n_context, double budget_ms);

  private:
    void set_model();
    void start(int n_context);
    void learn_pass(const CostSample& sample);

    Forward& forward_;
    int max_rows_;
    CostProfile profile_;
    ModulePlan whole_model_;
    OtherWork others_;
    std::optional<CostTracker> costs_;
    std::vector<double> first_steps_ms_;  // of plain decoding, until there is a cost model
    std::vector<Probe> probes_;           // still to be measured; the next one is last
};

}  // namespace knap
