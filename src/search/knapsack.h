// KnapSpec's search for a draft plan: an approximate knapsack over the 2L modules (docs/methods.md,
// "Knapsack", "Backtracking"; with module levels, "Level knapsack"). The weight of a choice is the
// time it saves, in integer units (module_weights.h). Its value is the cosine between the stream it
// leads to and the target's own stream on the r most recent tokens. Cell (b, j) of the table holds
// the best state found after the first b modules with j units saved. Every occupied cell of the
// last row is a candidate plan.
//
// The table handles no tensors: an evaluator holds the states and scores them. It holds one row of
// states and, while a module is tried, that module's results. Each cell keeps its best state
// greedily, so the plans are good but not optimal.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "forward/module_plan.h"

namespace knap {

// A level at which a module runs cheaper than `full`.
struct LevelChoice {
    Level level = Level::skip;
    int saved = 1;  // weight units saved compared with `full`, not negative
};

// A module. `full` is always available; a forced module has no other level.
struct KnapsackItem {
    std::vector<LevelChoice> cheaper{};
};

struct KnapsackProblem {
    std::vector<KnapsackItem> items{};  // [2L] attention and MLP of layer 0, of layer 1, ...
    int budget = 0;                     // B: the most weight that a plan may save
    // The search starts from the target's own stream before this module. All earlier modules are
    // forced, so running them would only recompute that stream.
    int first_module = 0;
};

struct KnapsackOptions {
    // tau: states with a lower mean cosine are pruned.
    double min_cosine = 0.5;

    // Where the paper and its published code differ, the defaults follow the code (docs/methods.md,
    // "Where the paper and its code differ": pruning test, ties, unskipped state).
    bool strict_threshold = false;  // paper: also prunes a mean cosine equal to tau
    bool skip_wins_ties = false;    // paper's pseudo-code: the level that saves more wins a tie
    // While nothing is saved, the state is the target's own stream, with a cosine of 1 by
    // definition, and is not computed again. The paper does this, too.
    bool reuse_target = false;

    // Drops every cell that another one beats in both saved weight and score (docs/methods.md,
    // "Level knapsack").
    bool drop_dominated = false;
    // Keeps at most this many cells of a row, those with the highest rank; 0: all. Of equal ranks
    // the one that saves less is kept. `rank` is required if max_cells is not 0.
    int max_cells = 0;
    std::function<double(int saved, double mean_cosine)> rank{};
};

// A level to try a module at, on the first states of the row: those that can afford it.
struct LevelTrial {
    Level level{};
    std::span<double> scores{};  // [states tried] output
};

struct ModuleTrial {
    int module = 0;                        // 2 * layer, and 1 more for the MLP
    std::span<const LevelTrial> levels{};  // `full` first, on every state, then by what they save
    // State 0 is the target's own stream X[module]. At `full` it becomes X[module + 1], which
    // scores n_rows() and need not be computed.
    bool first_is_target = false;
};

// A result of the last trial: levels[level] applied to state `state`.
struct KeptState {
    int state = 0;
    int level = 0;

    bool operator==(const KeptState&) const = default;
};

// Holds a row of states, indexed from 0: the occupied cells, ordered by the weight they save. A
// state is the residual stream of the r recent tokens, [n_embd, r].
class KnapsackEvaluator {
  public:
    virtual ~KnapsackEvaluator() = default;

    // r > 0. A score is the sum of r cosines.
    virtual int n_rows() const = 0;
    // Replaces the row by a single state: X[module], the target's stream before that module.
    virtual void start(int module) = 0;
    // Runs a module on states of the row at several levels, in one batch, and scores each result
    // against X[module + 1]. At `skip` the result is the state itself: nothing is computed, but it
    // is scored as well. A result whose score is not finite is dropped. Returns false if it was
    // cancelled: the row is then unchanged, and the module may be tried again.
    virtual bool try_module(const ModuleTrial& trial) = 0;
    // Replaces the row by these results of the last trial and drops the others.
    virtual void keep(std::span<const KeptState> kept) = 0;
};

struct KnapsackCandidate {
    ModulePlan plan;
    double score = 0;  // sum of the r cosines between the last state and X[2L]
};

// The largest number of states that an evaluator holds at once while solving `problem` with at most
// `max_cells` cells per row (0: no limit): a row, and a module's results on it.
std::size_t most_states(const KnapsackProblem& problem, int max_cells);

// The search, one module at a time, so that it can be spread over pauses.
class KnapsackSearch {
  public:
    // `evaluator` must outlive the object.
    KnapsackSearch(KnapsackProblem problem, KnapsackOptions options, KnapsackEvaluator& evaluator);
    ~KnapsackSearch();
    KnapsackSearch(const KnapsackSearch&) = delete;
    KnapsackSearch& operator=(const KnapsackSearch&) = delete;

    bool is_done() const;
    // How many states the next module has to run on, all its levels together.
    std::size_t n_next_states() const;
    // Tries the next module. Returns false if the evaluator was cancelled; nothing has changed
    // then. Not after the last one.
    bool advance();

    // When it is done: the plans of the last row, at most one per saved weight, in ascending order
    // of it. Candidate i ends in the evaluator's state i. Empty if some row lost all its cells.
    std::vector<KnapsackCandidate> candidates();

  private:
    class Table;
    std::unique_ptr<Table> table_;
};

// The whole search. Empty also if it was cancelled.
std::vector<KnapsackCandidate> solve_knapsack(const KnapsackProblem& problem,
                                              const KnapsackOptions& options,
                                              KnapsackEvaluator& evaluator);

}  // namespace knap
