// The command line of batch_bench.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace knap::bench {

struct BatchSettings {
    std::vector<std::string> questions{"throughput", "prefix", "arrival", "direct", "memory"};
    std::filesystem::path model;
    int n_threads = 0;
    std::string prompts = "built-in";  // or "random", or FILE.jsonl[:TASK]
    int shortest = 200;                // prompt, in tokens
    int longest = 400;
    int n_predict = 128;
    int n_repeats = 5;
    std::vector<int> n_sessions{1, 2, 4, 8, 12};
    std::vector<std::string> strategies{"autoregressive", "knapspec"};
    int n_prefix = 4000;    // tokens that the prompts of `prefix` share
    int n_newcomer = 6000;  // tokens of the prompt that arrives
};

}  // namespace knap::bench
