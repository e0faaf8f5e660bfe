// Finding out, with time to spend, what a model costs on this machine and which plans draft well
// for it: the work behind `knap profile`. Both use a cache and passes of their own.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "knap/knap.h"

#include "search/cost/cost_model.h"
#include "search/plan_search.h"

namespace knap {

// Each member may be empty. Called on the caller's thread; `is_cancelled` from compute threads too,
// so it should only read a flag.
struct ProfilingObserver {
    std::function<void(double fraction)> on_progress{};
    std::function<bool()> is_cancelled{};
};

// Measures for about `seconds`, at contexts up to the engine's. Nullopt: cancelled.
std::optional<CostProfile> profile_engine(Engine& engine,
                                          double seconds,
                                          const ProfilingObserver& observer = {});

// The plans that no other one beats in both cost and agreement, cheapest first, after `n_context`
// tokens of a text.
struct PlansAtContext {
    int n_context = 0;
    double plain_step_ms = 0;  // by the costs that the plans were searched with
    std::vector<FoundPlan> plans;
};

// Context lengths at which a text of `n_tokens` is searched, ascending: as far as text and context
// reach. Throws where the text is too short for any.
std::vector<int> plan_contexts(int n_tokens, int n_ctx);

// Searches at each of plan_contexts(). `on_found` (may be empty) hears of each context when it is
// done, so that nothing is lost when a later one is cancelled. False: cancelled.
bool find_plans(Engine& engine,
                std::span<const Token> text,
                const CostModel& costs,
                const std::function<void(const PlansAtContext&)>& on_found,
                const ProfilingObserver& observer = {});

}  // namespace knap
