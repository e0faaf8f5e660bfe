// How often a draft drawn from one distribution is kept by another: 1 - TV(p, q) (methods 1.6).
#pragma once

#include "sampling/distribution.h"

namespace knap {

// Sum over the tokens of min(p, q).
double overlap(const Distribution& p, const Distribution& q);

}  // namespace knap
