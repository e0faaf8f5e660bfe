// SWIFT's score of a plan (docs/methods.md, "Matchness"): the share of tokens of a text by the
// whole model that the plan, given the tokens before, would have chosen as well. Unlike in a replay
// (search/replay.h), a row attends to the plan's own keys and values of the earlier rows of the
// text, as the rows of a long draft do.
#pragma once

#include <optional>
#include <span>

#include "knap/types.h"

#include "forward/module_plan.h"

namespace knap {

class Forward;
class Sequence;

// Runs `text`, which follows the first `n_context` committed rows, with `plan` in scratch rows, and
// compares the choice of each row with the next token. `text` has at least two tokens; those that
// do not fit into one pass are ignored. Returns nullopt when cancelled or if no row fits.
std::optional<double> matchness(Forward& forward,
                                const Sequence& cache,
                                const ModulePlan& plan,
                                std::span<const Token> text,
                                int n_context);

}  // namespace knap
