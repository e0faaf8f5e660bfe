// Checks sampling options.
#pragma once

#include "knap/types.h"

namespace knap {

// Throws knap::Error that names the field when a value is out of range or not finite.
void validate(const SamplingOptions& options, int n_vocab);

}  // namespace knap
