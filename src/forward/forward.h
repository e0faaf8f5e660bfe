// The forward pass of one sequence: takes a request, returns logits and captured streams. It checks
// the request, has a runner compute it, alone or beside the requests of other sequences, and keeps
// the results.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "forward/batch.h"
#include "forward/pass.h"
#include "forward/pipeline.h"

namespace knap {

// Logit rows that memory is reserved for in advance. A pass that needs more makes it grow once.
inline constexpr int kReservedLogitRows = 32;

class Forward {
  public:
    // Passes over `sequence`, whose rows are in the pipeline's memory, through `runner`. All
    // arguments must outlive the object.
    Forward(Pipeline& pipeline, PassRunner& runner, Sequence& sequence);

    // Enables plans with a reduced head, with these rows of the head. `head` must outlive the
    // object.
    void set_draft_head(HeadSubset& head) { draft_head_ = &head; }
    // The cheapest head that a plan may use.
    HeadLevel cheapest_head() const;
    // Polled while passes wait and run, also from compute threads: true cancels them. Null: never.
    // The function must outlive its use.
    void set_cancel(const std::function<bool()>* is_cancelled) { is_cancelled_ = is_cancelled; }
    bool is_cancelled() const {
        return is_cancelled_ != nullptr && *is_cancelled_ && (*is_cancelled_)();
    }

    // Runs the pass. Does not change the number of committed rows. The rows must fit max_rows() and
    // the sequence. Takes pages for them if there are none; throws knap::Error when none is left.
    ForwardResult run(const ForwardRequest& request);

    // The most passes of a chain whose first row is cache row `first_row`. 0 for every row if the
    // device is the host, where returning to the program after every token costs nothing.
    int max_chain(int first_row) const { return pipeline_.max_chain(first_row); }
    // The largest ForwardRequest::n_best; 0: the device returns whole rows.
    int max_best() const { return pipeline_.max_best(); }
    // Whether chains draw tokens by this rule, and whether they stop by themselves.
    bool can_draw(const DrawRule& rule) const;
    bool chains_stop() const { return pipeline_.max_best() > 0; }
    ChainResult run_chain(const ChainRequest& request);

    // Copies a row over a scratch row: see Sequence.
    void copy_row(int from, int to);
    // Runs `work`, which reads or writes rows of the sequence: at once, or while no pass runs where
    // the device needs that.
    void use_rows(const std::function<void()>& work);

    // Lends memory for `n_rows` rows of streams on the device, to one holder at a time, for as long
    // as the pointer is held; the pipeline must outlive it. The rows are uninitialised. Null if
    // streams have to go through host memory: because the device computes there, because there are
    // several devices, because another session holds the bank, or because there is no room.
    std::shared_ptr<const StreamBank> borrow_bank(std::size_t n_rows);

    // What other sessions ask for.
    Load load() const { return runner_.load(); }
    const PassTotals& pass_totals() const { return totals_; }

    // The most rows of a pass whose first row is cache row `first_row`.
    int max_rows(int first_row) const { return pipeline_.max_rows(first_row); }
    const ModelConfig& config() const { return pipeline_.config(); }
    // Of the devices since this object was made, except for the time, which is of its own passes.
    ForwardStatistics statistics() const;

  private:
    ForwardRequest filled_in(const ForwardRequest& request) const;
    void check(const ForwardRequest& request, int n_rows) const;
    void check_bank(const BankRows& rows, std::size_t n_captured) const;
    void reserve(int n_rows);
    void count_pass(int n_rows);
    void view_captures();

    Pipeline& pipeline_;
    PassRunner& runner_;
    Sequence& sequence_;
    ModulePlan full_plan_;
    HeadSubset* draft_head_ = nullptr;  // null: there is the whole head alone
    const std::function<bool()>* is_cancelled_ = nullptr;
    RunResult result_;
    std::vector<std::span<const float>> captures_;
    ForwardStatistics before_;  // of the pipeline
    double compute_ms_ = 0;
    PassTotals totals_;
};

}  // namespace knap
