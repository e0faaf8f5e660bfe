// Means of each strategy over the prompts of a benchmark.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/measure/report/bench_report.h"
#include "tools/measure/statistics.h"

namespace knap {

// A strategy with an acceptance rule, on the prompts of one task or on all.
struct BenchSummary {
    std::string strategy;
    std::string acceptance;
    std::string task;  // empty: all
    int n_prompts = 0;
    Interval speedup;  // geometric mean over prompts
    double lowest_speedup = 0;
    Interval request_speedup;                 // whole requests, with prefill
    double tokens_per_second = 0;             // geometric mean
    std::optional<double> acceptance_rate{};  // of all drafted tokens; nullopt: none was drafted
    double mean_accepted_length = 0;          // tokens of all answers / their rounds
    bool is_projection = false;
};

// In the order of the rows: every strategy over all tasks and, if there are several, over each.
std::vector<BenchSummary> summarise(const std::vector<BenchRow>& rows);

}  // namespace knap
