// What a benchmark ran on and with, as JSON objects, and back. bench_file.h has the file around
// them.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

nlohmann::ordered_json to_json(const BenchHost& host);
nlohmann::ordered_json to_json(const BenchModel& model);
nlohmann::ordered_json to_json(const BenchSettings& settings);

// Throw knap::Error in words that follow a file's name.
BenchHost host_from(const nlohmann::json& object);
BenchModel model_from(const nlohmann::json& object);
BenchSettings settings_from(const nlohmann::json& object);

}  // namespace knap
