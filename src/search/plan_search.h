// A search for draft plans on the text at hand: the knapsack proposes, replay decides
// (methods 3.18, 3.19). Plans that are beyond paying are left out before they cost anything: those
// that no draft length would make faster than plain decoding if every draft were accepted.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "graph/module_plan.h"
#include "search/cost/cost_model.h"
#include "search/replay.h"

namespace knap {

class Forward;
class KvCache;

struct PlanSearchOptions {
    int n_rows = 32;  // r, as far as the text and the scratch rows allow
    // Levels of attention beside full and skip, and the uniform plans. The knapsack takes the first
    // kMaxWindows of those that do not cover the context.
    std::vector<Window> windows{};
    bool runs_knapsack = true;  // false: uniform windows and `known` plans alone
    int n_bins = 64;
    int max_cells = 16;  // 0: all
    double min_cosine = 0.5;
    // Plans that are replayed. Known plans, uniform windows and those of the knapsack take turns,
    // the most promising of the knapsack first, the others as they are given.
    int max_replays = 8;
    std::vector<ModulePlan> known{};  // the plan in use, saved ones
    int max_length = 10;              // draft lengths that a promise is made for
    AgreementRule rule{};
};

// A plan and how often it agreed with the whole model.
struct FoundPlan {
    ModulePlan plan;    // canonical at the context of the search
    double agreed = 0;  // of n_rows
    int n_rows = 0;
    double draft_step_ms = 0;
    enum class Source { window, knapsack, known } source = Source::window;

    double agreement() const { return n_rows > 0 ? agreed / n_rows : 0; }
};

// All plans that were replayed. Empty where nothing survived; nullopt: cancelled. The rows above
// the committed ones are used as scratch; the committed ones stay as they are. `text` begins with
// the committed rows' tokens.
std::optional<std::vector<FoundPlan>> search_plans(Forward& forward,
                                                   const KvCache& cache,
                                                   std::span<const Token> text,
                                                   const CostModel& costs,
                                                   const PlanSearchOptions& options);

// Rows that such a search sends through the whole model, about, so that its time can be predicted:
// rows * (time of a row in a large pass).
double predicted_rows(const PlanSearchOptions& options, int n_layers);

// The plans that no other one beats in both cost and agreement, cheapest first.
std::vector<FoundPlan> frontier(std::vector<FoundPlan> plans);

}  // namespace knap
