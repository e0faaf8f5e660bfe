// Counts a round's drafts for the way in which they were made, whatever strategy drafted.
#pragma once

#include <string_view>

#include "knap/types.h"

#include "decode/learned/learned.h"
#include "decode/strategy.h"

namespace knap {

// Nothing is learned from text that a grammar forces, from heads that were trained, or where
// acceptance is not that of the default rule. `n_context`: committed rows before the round.
void learn_round(const Proposal& proposal,
                 const RoundOutcome& outcome,
                 const GenerateOptions& request,
                 int n_context,
                 Learned& learned);

}  // namespace knap
