// Drafts under a constraint: tokens that do not fit are not worth a row of the verification. This
// saves time only; the acceptance rule would reject them.
#pragma once

#include "sampling/draft_tree.h"
#include "sampling/token_constraint.h"

namespace knap {

// Copies to `out` the nodes of `tree` whose tokens fit, in their order, from the place where
// `constraint` stands. Siblings that were drawn at random stay, because the ratio rule must see
// every draw; nothing stays below one that does not fit.
void keep_fitting(const DraftTree& tree, const TokenConstraint& constraint, DraftTree& out);

}  // namespace knap
