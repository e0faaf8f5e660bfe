// Loading a model with a progress bar.
#pragma once

#include "knap/knap.h"

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

// Without a model path, the default model.
Engine load_engine(RuntimeConfig config, const Environment& environment);

// What `settings` asks to generate, with the plan of its plan file.
GenerateOptions generate_options(const Engine& engine, const Settings& settings);

}  // namespace knap
