// `knap search`: searches for a plan to draft with, by timing plans on prompts.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"
#include "tools/offline_search/offline_search.h"

namespace knap {

struct SearchArgs {
    std::optional<SearchMethod> method;
    std::filesystem::path data;
    int limit = 8;  // maximum number of prompts; 0: all
    int n_predict = 32;
    int n_trials = 0;              // 0: the method's default
    std::optional<int> seed;       // draft-verify only
    std::vector<int> exit_layers;  // layerskip only; empty: spread over the model
    std::vector<int> lengths;      // layerskip only; empty: a few
    std::filesystem::path output;  // empty: not saved
};

CLI::App* add_search(CLI::App& root, Settings& settings, SearchArgs& args);
// Returns the exit code.
int run_search(const Settings& settings, const SearchArgs& args, const Environment& environment);

}  // namespace knap
