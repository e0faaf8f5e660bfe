// `knap info`: the shape of a model and the memory it needs. Allocates no cache.
#pragma once

#include <vector>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

struct InfoArgs {
    std::vector<int> lengths;  // context lengths to show; empty: several up to the model's
};

CLI::App* add_info(CLI::App& root, Settings& settings, InfoArgs& args);
// Returns the exit code.
int run_info(const Settings& settings, const InfoArgs& args, const Environment& environment);

}  // namespace knap
