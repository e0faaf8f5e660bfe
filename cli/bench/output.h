// Where a benchmark goes: files by their endings, written whole or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Throws UsageError unless it ends in .json, .csv or .md.
std::filesystem::path parse_bench_output(const std::string& name, const std::string& text);

bool is_json_output(const std::filesystem::path& path);

// Each in the form of its ending. Throws knap::Error.
void write_outputs(const std::vector<std::filesystem::path>& paths, const BenchReport& report);

}  // namespace knap
