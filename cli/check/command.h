// `knap check`: checks what a model computes on this machine. Compares batches with single-row
// passes, logits with libllama's, and the text of every strategy with plain decoding's.
#pragma once

#include <filesystem>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

struct CheckArgs {
    std::filesystem::path data;  // empty: the built-in prompts
    int limit = 8;               // maximum number of prompts; 0: all
    int n_predict = 48;
};

CLI::App* add_check(CLI::App& root, Settings& settings, CheckArgs& args);
// Returns the exit code: kExitFailed when a strategy's text differs from plain decoding's at a
// position that is not a near tie.
int run_check(const Settings& settings, const CheckArgs& args, const Environment& environment);

}  // namespace knap
