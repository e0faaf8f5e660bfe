// A cost model corrected by what rounds really take (methods 3.15, O1).
#pragma once

#include <vector>

#include "graph/module_plan.h"
#include "search/cost/cost_model.h"
#include "search/throughput.h"

namespace knap {

// Running means of measured over predicted times, by group: a factor that all groups share, and one
// of each group's own for what is left. Where a group is seldom seen, or nothing else is seen, both
// are drawn towards 1.
class RatioTracker {
  public:
    // Times that cannot be are left out: not finite, not positive, or so far from what was
    // predicted that rather the clock jumped. No time moves a mean by more than a bounded step.
    void observe(int group, double measured_ms, double predicted_ms);

    double factor(int group) const;      // measured / predicted, as expected of the group
    double own_factor(int group) const;  // of it, what the group does not share with others

  private:
    struct Group {
        double mean = 0;    // of log(measured / predicted)
        double n_seen = 0;  // fades while other groups are seen
    };
    double own_log(int group) const;

    std::vector<Group> groups_;
    double shared_log_ = 0;
};

// Drafts have one factor; verifications have one for each number of rows.
class CostTracker {
  public:
    explicit CostTracker(const CostModel& model) : model_(model) {}

    // `n_steps` steps of one row, the first after `n_context` committed rows.
    void observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms);
    void observe_verify(int n_rows, int n_context, double ms);

    const CostModel& model() const { return model_; }
    double draft_step_ms(const ModulePlan& plan, int n_context) const;
    double verify_ms(int n_rows, int n_context) const;
    double plain_step_ms(int n_context) const { return verify_ms(1, n_context); }
    // A pass with `plan` over several rows, as a cascade checks its guesses with.
    double draft_pass_ms(const ModulePlan& plan, int n_context, int n_rows) const;
    RoundCost round_cost(const ModulePlan& plan, int n_context, int max_length) const;
    std::vector<double> verify_times_ms(int n_context, int max_length) const;

  private:
    std::vector<double> corrected(std::vector<double> verify_ms) const;  // both [g]

    CostModel model_;
    RatioTracker drafts_;         // one group
    RatioTracker verifications_;  // a group for each number of rows
};

}  // namespace knap
