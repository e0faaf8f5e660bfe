// `knap explain`: the plans that the controller considers for a prompt, and what it chooses.
#pragma once

#include <filesystem>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

struct ExplainArgs {
    int n_predict = 64;
    std::filesystem::path output;  // .svg or .png; empty: none
};

CLI::App* add_explain(CLI::App& root, Settings& settings, ExplainArgs& args);
// Returns the exit code.
int run_explain(const Settings& settings, const ExplainArgs& args, const Environment& environment);

}  // namespace knap
