// Loads a model, with a progress bar.
#pragma once

#include "knap/knap.h"

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

// The file of the configuration; else the model of the hub, fetched if need be; else the default
// model.
std::filesystem::path find_model(const RuntimeConfig& config,
                                 const HubSettings& hub,
                                 const Environment& environment);

// Loads that model.
Engine load_engine(RuntimeConfig config, const HubSettings& hub, const Environment& environment);

// The generation options of `settings`, with the plan of its plan file, if any.
GenerateOptions generate_options(const Engine& engine, const Settings& settings);

}  // namespace knap
