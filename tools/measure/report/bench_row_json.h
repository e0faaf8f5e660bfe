// A row of a benchmark as a JSON object, and back. bench_file.h has the file around it.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

nlohmann::ordered_json to_json(const BenchRow& row);
// Of a model of so many layers, which its plans must fit. Where an older file has no
// `request_speedup`, its mean is 0. Throws knap::Error in words that follow a
// file's name.
BenchRow row_from(const nlohmann::json& object, int n_layers);

}  // namespace knap
