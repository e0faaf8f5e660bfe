// Searches for draft plans on the current text: the knapsack proposes, replay decides
// (docs/methods.md, "Level knapsack", "Replay"). Plans that could not beat plain decoding at any
// draft length, even with every draft accepted, are dropped before they cost anything. A search is
// a sequence of short pieces, which can be done whenever there is time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "forward/module_plan.h"
#include "search/cost/cost_model.h"
#include "search/replay.h"
#include "search/target_rows.h"

namespace knap {

class Forward;
class Sequence;

struct PlanSearchOptions {
    // Levels of attention besides `full` and `skip`, and the uniform plans. The knapsack uses
    // kMaxWindows of them: see knapsack_windows().
    std::vector<Window> windows{};
    bool runs_knapsack = true;  // false: only uniform windows and `known` plans
    int n_bins = 64;
    int max_cells = 16;  // 0: all
    double min_cosine = 0.5;
    // The most plans to replay. Known plans, uniform windows and knapsack plans take turns:
    // knapsack plans in order of predicted speed, the others in the given order.
    int max_replays = 8;
    std::vector<ModulePlan> known{};  // the plan in use, saved ones
    int max_length = 10;              // longest draft that a prediction considers
    TokenChoice choose{};             // what drafts take; empty: the argmax
};

// Of the windows that do not cover the context, kMaxWindows at most: the smallest, the largest, and
// those between them at even distances.
std::vector<Window> knapsack_windows(std::span<const Window> windows, int n_context);

// A plan, and how often it agreed with the whole model.
struct FoundPlan {
    ModulePlan plan;  // canonical at the context of the search
    int n_agreed = 0;
    int n_rows = 0;
    double draft_step_ms = 0;
    enum class Source { window, knapsack, known } source = Source::window;

    double agreement() const { return n_rows > 0 ? static_cast<double>(n_agreed) / n_rows : 0; }
};

class PlanSearch {
  public:
    // `target` must have streams if the knapsack runs. `forward` and `cache` must outlive the
    // object. The text may grow during the search, but the rows up to the target's must stay.
    PlanSearch(Forward& forward,
               const Sequence& cache,
               const CostModel& costs,
               TargetRows target,
               PlanSearchOptions options);
    ~PlanSearch();
    PlanSearch(const PlanSearch&) = delete;
    PlanSearch& operator=(const PlanSearch&) = delete;

    bool is_done() const;
    // The number of rows of the whole model that cost about as much as the next piece. Not after
    // the last one.
    double next_rows() const;
    // Does the next piece: a module of the knapsack, or a replay. Uses the rows above the committed
    // ones as scratch and leaves the committed ones unchanged. Returns false when cancelled, or if
    // no rows are free; the piece can be tried again.
    bool advance();

    const TargetRows& target() const;
    std::span<const FoundPlan> found() const;  // the plans replayed so far

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

// A whole search on the last `n_rows` of `text`, fewer where the text or the scratch rows are
// short, which the whole model computes first. `text` begins with the tokens of the committed rows.
// Returns all replayed plans; empty if no plan is worth replaying, nullopt when cancelled.
std::optional<std::vector<FoundPlan>> search_plans(Forward& forward,
                                                   const Sequence& cache,
                                                   std::span<const Token> text,
                                                   int n_rows,
                                                   const CostModel& costs,
                                                   const PlanSearchOptions& options);

// The approximate number of rows of the whole model that cost as much as such a search on `n_rows`,
// without the target's own.
double predicted_rows(const PlanSearchOptions& options, int n_rows, int n_layers);

// The plans that no other one beats in both cost and agreement, cheapest first.
std::vector<FoundPlan> frontier(std::vector<FoundPlan> plans);

}  // namespace knap
