// The one place where sampling options are checked.
#pragma once

#include "knap/types.h"

namespace knap {

// Throws, naming the flag, when a value is out of its range or not finite.
void validate(const SamplingOptions& options, int n_vocab);

}  // namespace knap
