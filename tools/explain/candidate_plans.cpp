#include "tools/explain/candidate_plans.h"

#include <algorithm>
#include <utility>

namespace knap {
namespace {

constexpr int kSearchRows = 32;
// Half the default, so that twice the rows take the same time.
constexpr int kMaxCells = 8;
constexpr int kMaxReplays = 32;

// The search itself tries uniform windows with the whole head; all other plans of the pool are
// passed to it as known.
PlanSearchOptions search_options(const PlanPool& pool,
                                 const PlanScoutOptions& scout,
                                 int n_layers) {
    PlanSearchOptions search{.windows = scout.windows,
                             .max_cells = kMaxCells,
                             .max_replays = kMaxReplays,
                             .max_length = scout.max_length};
    const auto is_uniform = [&](const ModulePlan& plan) {
        return std::ranges::any_of(scout.windows, [&](const Window& window) {
            return plan == uniform_window_plan(n_layers, window);
        });
    };
    for (int i = 0; i < pool.n_plans(); ++i) {
        if (!is_uniform(pool.at(i).plan)) {
            search.known.push_back(pool.at(i).plan);
        }
    }
    return search;
}

}  // namespace

std::optional<CandidatePlans> find_candidate_plans(Session::Impl& session,
                                                   std::span<const Token> text,
                                                   const CostModel& costs,
                                                   const PlanScoutOptions& scout) {
    const int n_layers = session.engine.model.n_layers;
    PlanPool pool(n_layers, session.forward.cheapest_head(), scout.windows, session.plans);
    pool.grow(static_cast<int>(text.size()));
    auto found = search_plans(session.forward, session.cache, text, kSearchRows, costs,
                              search_options(pool, scout, n_layers));
    if (!found) {
        return std::nullopt;
    }
    pool.learn(*found);
    return CandidatePlans{.pool = std::move(pool), .found = std::move(*found)};
}

}  // namespace knap
