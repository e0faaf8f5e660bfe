// Converts what a strategy achieved with several sessions at once to JSON and back. bench_file.h
// handles the whole file.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

nlohmann::ordered_json to_json(const BenchLoad& load);
// Throws knap::Error with a message that the caller puts after the file's name.
BenchLoad load_from(const nlohmann::json& object);

}  // namespace knap
