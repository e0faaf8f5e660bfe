// Loading a model with a progress bar.
#pragma once

#include "knap/knap.h"

#include "cli/environment.h"

namespace knap {

// Without a model path, the default model.
Engine load_engine(RuntimeConfig config, const Environment& environment);

}  // namespace knap
