// A batch: the runs of rows that one pass computes, each of one sequence. The rows of a run do not
// depend on the other runs; the pass only shares the reading of the weights among them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "forward/pass.h"

namespace knap {

class HeadSubset;
class Sequence;

// The results of a run, in memory that keeps its size from pass to pass.
struct RunResult {
    bool is_complete = false;   // false: cancelled
    int n_rows = 0;             // computed
    std::vector<float> logits;  // [n_vocab, n_logit_rows]
    std::vector<Token> choices;
    std::vector<RankKey> best;                 // of all logit rows
    std::vector<int> best_ends;                // of each, in `best`
    std::vector<std::vector<float>> captures;  // each [n_embd, n_rows]
    std::vector<float> cosines;
    std::vector<float> probabilities;  // of a chain: [n_steps]
    std::vector<float> stream;         // [n_embd, n_rows] after the last layer, for the next device
    PassFacts pass{};
};

struct RowRun {
    const Sequence* sequence = nullptr;  // with memory for the rows
    ForwardRequest request{};            // with plan, exit layer and context filled in
    int n_rows = 0;                      // of the request
    HeadSubset* reduced_head = nullptr;  // if the plan has a reduced head
    // Whether the request is still wanted; polled from compute threads. Null: it is.
    const std::function<bool()>* is_cancelled = nullptr;
    RunResult* result = nullptr;

    bool is_unwanted() const {
        return is_cancelled != nullptr && *is_cancelled && (*is_cancelled)();
    }
};

// Whether a pass of these runs may become unwanted, and whether it is: nobody wants any of them.
bool may_be_unwanted(std::span<const RowRun* const> runs);
bool are_unwanted(std::span<const RowRun* const> runs);

// A chain of one-row passes of one sequence.
struct ChainRun {
    const Sequence* sequence = nullptr;
    ChainRequest request{};  // with the plan filled in
    int context = 0;         // the end of the text that the rows follow
    const std::function<bool()>* is_cancelled = nullptr;
    RunResult* result = nullptr;
};

// Whether two runs may be computed in one pass: the same modules of the same layers, and the same
// head. Runs that use a bank of streams go alone.
bool can_share_pass(const RowRun& a, const RowRun& b);

// What passes of several runs may look like without changing a row's bits.
struct PassLimits {
    int max_rows = 0;              // of any pass
    int max_shared_rows = 0;       // of a pass of several runs; 1: every run goes alone
    bool divides_prompts = false;  // prompts may be cut anywhere
};

// Takes down in the results of all runs of a pass that it took `ms`, and what else was in it.
void set_pass_facts(std::span<RowRun* const> runs, double ms);

// Computes the runs of one pass, all of which may share it, and fills their results, with the facts
// of the pass. Runs are computed as far as their `n_rows`. An abandoned pass (every run is
// cancelled) completes no run.
class BatchRunner {
  public:
    virtual ~BatchRunner() = default;
    virtual PassLimits limits() const = 0;
    virtual void run(std::span<RowRun* const> runs) = 0;
};

// How a session gets its passes computed.
class PassRunner {
  public:
    virtual ~PassRunner() = default;
    // Returns when the run is computed or cancelled, or is a search that has to stop. A prompt may
    // be computed in part: the result's n_rows says how far.
    virtual void run(RowRun& run) = 0;
    // Runs `work` while no pass runs: for chains, and for copies on a device.
    virtual void run_alone(const std::function<void()>& work) = 0;
    // For the session on the calling thread.
    virtual Load load() const { return {}; }
};

}  // namespace knap
