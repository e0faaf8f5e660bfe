// What the acceptance of one window says about that of others: a larger window accepts about as
// much or a little more. So ten windows are not ten blind trials (docs/methods.md, "Shrinkage").
// Arithmetic only.
#pragma once

#include <span>
#include <vector>

#include "search/throughput.h"

namespace knap {

// What was seen of a window's drafts; counts may have faded.
struct WindowEvidence {
    int recent = 0;  // size of the window
    double accepted = 0;
    double judged = 0;
};

// For each of `windows`, ascending by size, the belief that follows from the evidence of all others
// but not from its own. Without any evidence these are the beliefs before anything was seen.
std::vector<AcceptancePrior> beliefs_from_others(std::span<const WindowEvidence> windows);

}  // namespace knap
