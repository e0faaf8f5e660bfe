// The rows and means of a benchmark as table cells, for display.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/measure/report/bench_report.h"
#include "tools/measure/report/bench_summary.h"

namespace knap {

struct BenchTable {
    std::vector<std::string> headings;
    std::vector<std::vector<std::string>> lines;  // each as long as the headings
};

// Explains the columns `speedup` and `request` below a table.
inline constexpr const char* kSpeedupNote =
    "speedup: decoding only; request: the whole request, prefill and decoding";

BenchTable row_table(std::span<const BenchRow> rows);
BenchTable summary_table(std::span<const BenchSummary> summaries);

}  // namespace knap
