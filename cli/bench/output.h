// The output files of a benchmark. The extension gives the format; files are replaced atomically.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Throws UsageError unless the file ends in .json, .csv or .md. `name` is the flag.
std::filesystem::path parse_bench_output(const std::string& name, const std::string& text);

bool is_json_output(const std::filesystem::path& path);

// Writes each file in the format of its extension. Throws knap::Error.
void write_outputs(const std::vector<std::filesystem::path>& paths, const BenchReport& report);

}  // namespace knap
