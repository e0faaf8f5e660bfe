// How well a plan drafts a text that the whole model has written (methods 5, "matchness"): the
// share of its tokens that the plan would have chosen by itself, after the tokens before them.
// Unlike a replay (search/replay.h) a row sees the plan's own keys and values of the rows before
// it, back to where the text begins, as the rows of a long draft do.
#pragma once

#include <optional>
#include <span>

#include "knap/types.h"

#include "graph/module_plan.h"

namespace knap {

class Forward;
class KvCache;

// Runs `text`, which follows the first `n_context` committed rows, with `plan` in scratch rows, and
// compares the choice of each row with the token after it. `text` has two tokens or more; those
// that do not fit one pass are left out. Nullopt: cancelled, or no row fits.
std::optional<double> matchness(Forward& forward,
                                const KvCache& cache,
                                const ModulePlan& plan,
                                std::span<const Token> text,
                                int n_context);

}  // namespace knap
