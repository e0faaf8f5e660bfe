// The plans that the controller (decode/knapspec/knapspec.h) could draft with after a text: those
// of its pool, and those that a search on the text finds. The search is larger than the
// controller's own, because it may take its time.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "decode/knapspec/plan_pool.h"
#include "decode/knapspec/plan_scout.h"
#include "runtime/session_impl.h"
#include "search/cost/cost_model.h"
#include "search/plan_search.h"

namespace knap {

struct CandidatePlans {
    PlanPool pool;                   // includes the plans found
    std::vector<FoundPlan> found{};  // every plan that was replayed
};

// `text` is the tokens of the session's committed rows. Returns nullopt when cancelled.
std::optional<CandidatePlans> find_candidate_plans(Session::Impl& session,
                                                   std::span<const Token> text,
                                                   const CostModel& costs,
                                                   const PlanScoutOptions& scout);

}  // namespace knap
