// Searches for draft plans on the current text: the knapsack proposes, replay decides
// (docs/methods.md, "Level knapsack", "Replay"). Plans that could not beat plain decoding at any
// draft length, even with every draft accepted, are dropped before they cost anything.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "forward/module_plan.h"
#include "search/cost/cost_model.h"
#include "search/replay.h"

namespace knap {

class Forward;
class Sequence;

struct PlanSearchOptions {
    int n_rows = 32;  // r, limited by the text and the scratch rows
    // Levels of attention besides `full` and `skip`, and the uniform plans. The knapsack uses the
    // first kMaxWindows of those that do not cover the context.
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
    AgreementRule rule{};
};

// A plan, and how often it agreed with the whole model.
struct FoundPlan {
    ModulePlan plan;    // canonical at the context of the search
    double agreed = 0;  // of n_rows
    int n_rows = 0;
    double draft_step_ms = 0;
    enum class Source { window, knapsack, known } source = Source::window;

    double agreement() const { return n_rows > 0 ? agreed / n_rows : 0; }
};

// Returns all replayed plans; empty if no plan is worth replaying, nullopt when cancelled. Uses the
// rows above the committed ones as scratch and leaves the committed ones unchanged. `text` begins
// with the tokens of the committed rows.
std::optional<std::vector<FoundPlan>> search_plans(Forward& forward,
                                                   const Sequence& cache,
                                                   std::span<const Token> text,
                                                   const CostModel& costs,
                                                   const PlanSearchOptions& options);

// The approximate number of rows that such a search sends through the whole model. Its predicted
// time is this times the time of a row in a large pass.
double predicted_rows(const PlanSearchOptions& options, int n_layers);

// The plans that no other one beats in both cost and agreement, cheapest first.
std::vector<FoundPlan> frontier(std::vector<FoundPlan> plans);

}  // namespace knap
