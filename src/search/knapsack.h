// KnapSpec's search for a draft plan (methods 3.6, 3.8; with module levels 3.18): an approximate
// knapsack over the 2L modules. The weight of a choice is the time that it saves, counted in
// integer units (module_weights.h); its value is the cosine between the stream that it leads to
// and the target's own stream, on the r most recent tokens. Cell (b, j) of the table is the best
// state found after the first b modules with j units saved, and every occupied cell of the last
// row is a candidate plan.
//
// The table knows no tensors: an evaluator holds the states and scores them. It holds one row of
// states and, while a module is tried, what that module makes of them. The best state of a cell is
// kept greedily, so that the plans found are good, not optimal.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "graph/module_plan.h"

namespace knap {

// A way to run a module that is cheaper than `full`.
struct LevelChoice {
    Level level = Level::skip;
    int saved = 1;  // units of weight against `full`, not negative (methods: w_full - w_o)
};

// A module. `full` can always be chosen; a forced module has nothing cheaper.
struct KnapsackItem {
    std::vector<LevelChoice> cheaper{};
};

struct KnapsackProblem {
    std::vector<KnapsackItem> items{};  // [2L] attention and MLP of layer 0, of layer 1, ...
    int budget = 0;                     // B: the weight that a plan may save, at most
    // The search starts from the target's own stream before this module; those before it are
    // forced, so that they would only compute that stream again.
    int first_module = 0;
};

struct KnapsackOptions {
    // tau: states of a lower mean cosine are pruned.
    double min_cosine = 0.5;

    // Where the paper and its published code differ (methods 3.13), the defaults are the code's.
    bool strict_threshold = false;  // D6, paper: prunes a mean cosine equal to tau, too
    bool skip_wins_ties = false;    // D5, paper's pseudo-code: of equal scores, more is saved
    // D7 and O7: while nothing is saved the state is the target's own stream, with a cosine of 1
    // by definition, instead of that stream computed once more.
    bool reuse_target = false;

    // Leaves out every cell that another one beats in both saved weight and score (O7).
    bool drop_dominated = false;
    // Keeps the cells of a row that rank highest, at most so many (O7); 0: all. Of equal ranks
    // the one that saves less stays. `rank` is needed where max_cells is given.
    int max_cells = 0;
    std::function<double(int saved, double mean_cosine)> rank{};
};

// A level at which a module is tried on the first states of the row, those whose budget allows it.
struct LevelTrial {
    Level level{};
    std::span<double> scores{};  // [states tried] to be filled
};

struct ModuleTrial {
    int module = 0;                        // 2 * layer, and 1 more for the MLP
    std::span<const LevelTrial> levels{};  // `full` first, on every state; less and less is kept
    // State 0 is the target's own stream X[module]. At `full` it becomes X[module + 1], which
    // scores n_rows() and need not be computed.
    bool first_is_target = false;
};

// A result of the last trial: levels[level] on state `state`.
struct KeptState {
    int state = 0;
    int level = 0;

    bool operator==(const KeptState&) const = default;
};

// Holds a row of states, numbered from 0: the occupied cells in the order of the weight they save.
// A state is the residual stream of the r recent tokens, [r, n_embd].
class KnapsackEvaluator {
  public:
    virtual ~KnapsackEvaluator() = default;

    // r, above 0: a score is the sum of that many cosines.
    virtual int n_rows() const = 0;
    // Makes a row of one state: X[module], the target's stream before that module.
    virtual void start(int module) = 0;
    // Runs a module on states of the row at several levels, in one batch, and scores each result
    // against X[module + 1]. At `skip` the result is the state itself: nothing is computed, yet it
    // has a score there. A score that is not finite drops the result; an evaluator that must give
    // up says so of all of them, and the search ends without candidates.
    virtual void try_module(const ModuleTrial& trial) = 0;
    // Replaces the row by these results of the last trial; the others are dropped.
    virtual void keep(std::span<const KeptState> kept) = 0;
};

struct KnapsackCandidate {
    ModulePlan plan;
    double score = 0;  // sum of the r cosines between its last state and X[2L]
};

// The most states that an evaluator holds at once while `problem` is solved with rows of at most
// `max_cells` cells (0: any number): a row, and what a module makes of it.
std::size_t most_states(const KnapsackProblem& problem, int max_cells);

// The plans of the last row, in the order of the weight they save: at most one for each weight.
// Candidate i ends in the evaluator's state i. None where a row lost all its cells.
std::vector<KnapsackCandidate> solve_knapsack(const KnapsackProblem& problem,
                                              const KnapsackOptions& options,
                                              KnapsackEvaluator& evaluator);

}  // namespace knap
