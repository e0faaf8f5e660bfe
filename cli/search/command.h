// `knap search`: finds a plan to draft with by trying plans on prompts.
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
    int limit = 8;  // prompts, at most; 0: all
    int n_predict = 32;
    int n_trials = 0;              // 0: as many as the method likes
    std::optional<int> seed;       // of draft-verify
    std::vector<int> exit_layers;  // of layerskip; empty: spread over the model
    std::vector<int> lengths;      // of layerskip; empty: a few
    std::filesystem::path output;  // empty: nothing is kept
};

CLI::App* add_search(CLI::App& root, Settings& settings, SearchArgs& args);
// Returns the exit code.
int run_search(const Settings& settings, const SearchArgs& args, const Environment& environment);

}  // namespace knap
