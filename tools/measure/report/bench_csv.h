// A benchmark as comma-separated values (RFC 4180): one line of flat columns per row. Every line
// repeats model, machine and settings.
#pragma once

#include <string>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Times are means over turns, unknown values are empty, lists are joined by spaces.
std::string to_csv(const BenchReport& report);

}  // namespace knap
