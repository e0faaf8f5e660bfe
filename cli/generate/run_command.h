// `knap run`: one prompt, one answer.
#pragma once

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

CLI::App* add_run(CLI::App& root, Settings& settings);
int run_prompt(const Settings& settings, const Environment& environment);  // returns the exit code

}  // namespace knap
