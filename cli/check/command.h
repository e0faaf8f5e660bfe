// `knap check`: what a model computes on this machine, held against itself and against libllama.
#pragma once

#include <filesystem>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

struct CheckArgs {
    std::filesystem::path data;  // empty: prompts of our own
    int limit = 8;               // prompts, at most; 0: all
    int n_predict = 48;
};

CLI::App* add_check(CLI::App& root, Settings& settings, CheckArgs& args);
// Returns the exit code: kExitFailed when a strategy wrote another text than plain decoding.
int run_check(const Settings& settings, const CheckArgs& args, const Environment& environment);

}  // namespace knap
