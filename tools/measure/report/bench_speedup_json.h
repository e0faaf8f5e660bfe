// Converts a speedup to JSON and back, for rows and loads.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

nlohmann::ordered_json to_json(const BenchSpeedup& speedup);
// Throws knap::Error with a message that the caller puts after the file's name.
BenchSpeedup speedup_from(const nlohmann::json& object);

}  // namespace knap
