// What people see of a benchmark: rows and means as the cells of a table.
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

// What the columns `speedup` and `request` are, as a line below a table.
inline constexpr const char* kSpeedupNote =
    "speedup: decoding alone; request: the whole request, reading the prompt and decoding";

BenchTable row_table(std::span<const BenchRow> rows);
BenchTable summary_table(std::span<const BenchSummary> summaries);

}  // namespace knap
