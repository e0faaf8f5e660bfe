// The work behind `knap profile`: measures the costs of a model on this machine, and finds plans
// that draft well for it. Both use their own cache and passes.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "knap/knap.h"

#include "search/cost/cost_model.h"
#include "search/plan_search.h"
#include "search/saved_plans.h"

namespace knap {

// Members may be empty. Called on the caller's thread; `is_cancelled` also on compute threads, so
// it should only read a flag.
struct ProfilingObserver {
    std::function<void(double fraction)> on_progress{};
    std::function<bool()> is_cancelled{};
};

// Measures for about `seconds`, at contexts up to the engine's. Returns nullopt when cancelled.
std::optional<CostProfile> profile_engine(Engine& engine,
                                          double seconds,
                                          const ProfilingObserver& observer = {});

// The plans that no other plan beats in both cost and agreement, cheapest first, after `n_context`
// tokens of a text.
struct PlansAtContext {
    int n_context = 0;
    double plain_step_ms = 0;  // predicted by the costs of the search
    std::vector<FoundPlan> plans;
};

// The plans as they are saved.
std::vector<SavedPlan> to_saved(const PlansAtContext& found);

// The context lengths to search at, ascending: those within both the text of `n_tokens` and the
// context size. Throws when the text is too short for any.
std::vector<int> plan_contexts(int n_tokens, int n_ctx);

// Searches at each of plan_contexts(). Calls `on_found` (may be empty) after each context, so that
// nothing is lost when a later one is cancelled. Returns false when cancelled.
bool find_plans(Engine& engine,
                std::span<const Token> text,
                const CostModel& costs,
                const std::function<void(const PlansAtContext&)>& on_found,
                const ProfilingObserver& observer = {});

}  // namespace knap
