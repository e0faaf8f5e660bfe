// A cost model corrected by the measured times of rounds (docs/methods.md, "Measured costs"), which
// prices the rows of a session beside those of others (docs/methods.md, "Several sessions").
#pragma once

#include <vector>

#include "forward/module_plan.h"
#include "forward/pass.h"
#include "search/cost/cost_model.h"
#include "search/throughput.h"

namespace knap {

// Running means of measured over predicted times by group: a factor that all groups share, and each
// group's own factor for the remainder. With few observations both stay close to 1.
class RatioTracker {
  public:
    // Ignores implausible times: not finite, not positive, or so far from the prediction that the
    // clock probably jumped. A single time moves a mean by a bounded step.
    void observe(int group, double measured_ms, double predicted_ms);

    double factor(int group) const;      // expected measured / predicted of the group
    double own_factor(int group) const;  // the part of it that other groups do not share

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

    // `n_steps` one-row steps, the first after `n_context` committed rows.
    void observe_draft(const ModulePlan& plan, int n_context, int n_steps, double ms);
    // `n_rows` of all sessions.
    void observe_verify(int n_rows, int n_context, double ms);
    // What other sessions are expected to have in the passes that verify.
    void set_others(const OtherWork& others) { others_ = others; }
    const OtherWork& others() const { return others_; }

    const CostModel& model() const { return model_; }
    double draft_step_ms(const ModulePlan& plan, int n_context) const;
    double verify_ms(int n_rows, int n_context) const;  // without others
    double plain_step_ms(int n_context) const { return verify_ms(1, n_context); }
    // The speed of plain decoding, and its time for `n_tokens`, beside these others. Their tokens
    // count as well.
    double plain_tokens_per_ms(int n_context) const;
    double plain_ms(double n_tokens, int n_context, const OtherWork& others) const;
    // A pass of several rows with `plan`, as a cascade uses to check a guess.
    double draft_pass_ms(const ModulePlan& plan, int n_context, int n_rows) const;
    RoundCost round_cost(const ModulePlan& plan, int n_context, int max_length) const;
    // Of a round without a plan.
    RoundCost round_cost(int n_context, int max_length) const;

  private:
    int n_other_rows() const;
    std::vector<double> corrected(std::vector<double> verify_ms) const;  // both [g]

    CostModel model_;
    OtherWork others_;
    RatioTracker drafts_;         // one group
    RatioTracker verifications_;  // a group for each number of rows
};

}  // namespace knap
