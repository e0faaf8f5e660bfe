// `knap bench`: compares strategies with plain decoding on prompts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/App.hpp>

#include "cli/environment.h"
#include "cli/flags/flags.h"
#include "tools/measure/race_options.h"

namespace knap {

struct BenchArgs {
    std::vector<std::string> data;  // sources of prompts; empty: built-in prompts, or only `depths`
    std::vector<std::string> strategies;  // add_bench() sets the default
    std::vector<RaceRule> rules;          // empty: greedy, or shared noise when sampling
    int n_predict = 128;
    int parallel = 1;           // sessions that serve the prompts at once
    int limit = 0;              // prompts of each source; 0: all
    int skip = 0;               // prompts of each source that are left out first
    int max_prompt_tokens = 0;  // 0: prompts are not cut
    int repeat = 3;
    std::vector<int> depths;
    std::vector<std::string> peers;  // of kPeerNames
    bool fresh_strategies = false;
    std::vector<std::filesystem::path> outputs;
    std::filesystem::path resume;  // empty: a new benchmark
};

CLI::App* add_bench(CLI::App& root, Settings& settings, BenchArgs& args);
// Returns the exit code.
int run_bench(const Settings& settings, const BenchArgs& args, const Environment& environment);

}  // namespace knap
