// Loads a model, with a progress bar.
#pragma once

#include "knap/knap.h"

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

// Loads the default model when the configuration has no model path.
Engine load_engine(RuntimeConfig config, const Environment& environment);

// The generation options of `settings`, with the plan of its plan file, if any.
GenerateOptions generate_options(const Engine& engine, const Settings& settings);

}  // namespace knap
