// `knap check`: checks what a model computes on this machine. Compares batches with single-row
// passes, logits with libllama's, and the text of every strategy with plain decoding's. The long
// check (--tokens) only does the last, on random requests and engines.
#pragma once

#include <filesystem>
#include <optional>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"

namespace knap {

struct CheckArgs {
    std::filesystem::path data;  // empty: the built-in prompts
    int limit = 8;               // maximum number of prompts; 0: all
    int n_predict = 48;
    // Of the long check, which replaces the others if any of the first three is given.
    int n_tokens = 0;
    std::optional<int> only_case{};
    std::filesystem::path record;  // empty: none
    int seed = 1;

    bool is_long() const { return n_tokens > 0 || only_case || !record.empty(); }
};

CLI::App* add_check(CLI::App& root, Settings& settings, CheckArgs& args);
// Returns the exit code: kExitFailed when a strategy's text differs from plain decoding's at a
// position that is not a near tie.
int run_check(const Settings& settings, const CheckArgs& args, const Environment& environment);

}  // namespace knap
