// `knap chat`: a conversation that keeps its cache between turns.
#pragma once

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

CLI::App* add_chat(CLI::App& root, Settings& settings);
int run_chat(const Settings& settings, const Environment& environment);  // returns the exit code

}  // namespace knap
