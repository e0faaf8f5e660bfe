// Converts the machine, model and settings of a benchmark to JSON and back. bench_file.h handles
// the whole file.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

nlohmann::ordered_json to_json(const BenchHost& host);
nlohmann::ordered_json to_json(const BenchModel& model);
nlohmann::ordered_json to_json(const BenchSettings& settings);

// Throw knap::Error with a message that the caller puts after the file's name.
BenchHost host_from(const nlohmann::json& object);
BenchModel model_from(const nlohmann::json& object);
BenchSettings settings_from(const nlohmann::json& object);

}  // namespace knap
