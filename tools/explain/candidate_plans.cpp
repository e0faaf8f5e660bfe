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
                                 std::span<const int> own_windows) {
    PlanSearchOptions search{.windows = scout.windows,
                             .max_cells = kMaxCells,
                             .max_replays = kMaxReplays,
                             .max_length = scout.max_length};
    const auto is_uniform = [&](const ModulePlan& plan) {
        return std::ranges::any_of(scout.windows, [&](const Window& window) {
            return plan == uniform_window_plan(window, own_windows);
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
    const std::vector<int> own_windows = session.engine.model.windows();
    PlanPool pool(own_windows, session.forward.cheapest_head(), scout.windows, session.known.plans);
    pool.grow(static_cast<int>(text.size()));
    pool.recall(session.known.learned, static_cast<int>(text.size()), /*is_sampled=*/false);
    auto found = search_plans(session.forward, session.cache, text, kSearchRows, costs,
                              search_options(pool, scout, own_windows));
    if (!found) {
        return std::nullopt;
    }
    pool.learn(*found);
    return CandidatePlans{.pool = std::move(pool), .found = std::move(*found)};
}

}  // namespace knap
