// Learns the cost of passes while requests run: from a saved profile if there is one, otherwise
// from what earlier runs have learned, from steps of plain decoding and from a few measured passes
// that the search budget pays for. Every round corrects it, those of earlier runs included, and now
// and then a pass is measured again (docs/methods.md, "Measured costs").
#pragma once

#include <algorithm>
#include <map>
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
    // Whether rows may be much cheaper than they seem: all that is known of several rows are a few
    // disturbed passes, and a disturbance only adds time.
    bool doubts_rows() const { return doubts_rows_; }
    // Whether passes are still to be measured that decide if drafts can pay at all.
    bool lacks_prices() const { return std::ranges::any_of(probes_, is_decisive); }

    // Records the time of a pass over `n_rows` rows after `n_context` committed ones, those of
    // other sessions included. Disturbed times correct the costs too, because the machine may go
    // on like that, but later runs are not told of them.
    void observe_verify(int n_rows, int n_context, const PassTime& time);
    // What other sessions are expected to have in the passes that verify.
    void set_others(const OtherWork& others);
    void observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms);

    // Measures one more pass if its predicted time fits `budget_ms`, or `decisive_ms` if it decides
    // whether drafts can pay at all; or one once more if it takes a small part of the budget.
    // Returns the time spent; 0 if nothing is left to measure, there is no time for it, or it was
    // cancelled.
    double learn(int n_context, double budget_ms, double decisive_ms = 0);
    // The same between requests, where passes cost nothing. It comes to an end until there were
    // more rounds.
    double use_idle_time(int n_context);

  private:
    void set_model();
    bool has_few_disturbed_rows() const;
    void start(int n_context);
    void recall();
    void plan_probes(int n_context);
    void learn_pass(const CostSample& sample);
    // Whether it was measured on a quiet machine.
    bool is_known(const Probe& probe) const;
    double measure_next(int n_context, double budget_ms, double decisive_ms);
    double measure_again(int n_context, double budget_ms);
    void note_steady(int n_rows, int n_context, double ms);

    MeasurePass measure_;
    int max_rows_;
    CostProfile profile_;
    ModulePlan whole_model_;
    OtherWork others_;
    std::optional<CostTracker> costs_;
    bool doubts_rows_ = false;
    std::vector<PassTime> first_steps_;  // of plain decoding, until there is a cost model
    std::vector<Probe> probes_;          // still to be measured; the next one is last
    const Learned* known_;
    Learned* notes_;
    bool needs_probes_;  // what is missing in the profile is not known yet
    // Measured over predicted times of undisturbed verifications, by their number of rows.
    std::map<int, std::vector<double>> steady_;
    int n_rechecks_ = 0;
    int recheck_in_ = 0;  // refreshes, which are calls of learn()
};

}  // namespace knap
