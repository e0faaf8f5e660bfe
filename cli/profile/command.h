// `knap profile`: measures what passes cost on this machine, and with --plans finds plans that
// draft well. Saves both for later runs.
#pragma once

#include <filesystem>
#include <vector>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

struct ProfileArgs {
    float seconds = 15;
    std::vector<std::filesystem::path> outputs;  // .json, .svg, .png
    bool finds_plans = false;
};

CLI::App* add_profile(CLI::App& root, Settings& settings, ProfileArgs& args);
// Returns the exit code.
int run_profile(const Settings& settings, const ProfileArgs& args, const Environment& environment);

}  // namespace knap
