// The probability that a draft drawn from q is accepted under p by the ratio rule: 1 - TV(p, q)
// (docs/methods.md, "Ratio rule").
#pragma once

#include "sampling/distribution.h"

namespace knap {

// The sum of min(p, q) over all tokens.
double overlap(const Distribution& p, const Distribution& q);

}  // namespace knap
