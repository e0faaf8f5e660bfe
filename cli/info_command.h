// `knap info`: what a model is, and what running it takes. Reserves no cache.
#pragma once

#include <vector>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

struct InfoArgs {
    std::vector<int> lengths;  // context lengths to show; empty: some up to the model's own
};

CLI::App* add_info(CLI::App& root, Settings& settings, InfoArgs& args);
// Returns the exit code.
int run_info(const Settings& settings, const InfoArgs& args, const Environment& environment);

}  // namespace knap
