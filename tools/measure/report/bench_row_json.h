// Converts a row of a benchmark to JSON and back. bench_file.h handles the whole file.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/measure/report/bench_report.h"

namespace knap {

nlohmann::ordered_json to_json(const BenchRow& row);
// Plans must fit a model of `n_layers` layers. The mean of `request_speedup` is 0 in rows of older
// files that lack it. Throws knap::Error with a message that the caller puts after the file's name.
BenchRow row_from(const nlohmann::json& object, int n_layers);

}  // namespace knap
