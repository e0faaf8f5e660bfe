// The plans that the controller (decode/knapspec.h) could draft with after a text, looked for with
// time to spend: those of its pool, and those that a search on the text finds.
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
    PlanPool pool;                   // has learned what was found
    std::vector<FoundPlan> found{};  // every plan that was replayed
};

// `text` are the tokens of the session's committed rows. Nullopt: cancelled.
std::optional<CandidatePlans> find_candidate_plans(Session::Impl& session,
                                                   std::span<const Token> text,
                                                   const CostModel& costs,
                                                   const PlanScoutOptions& scout);

}  // namespace knap
