// A benchmark as comma-separated values (RFC 4180): a line for each row with flat columns, and in
// every line what it was measured with.
#pragma once

#include <string>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Times are means over turns; what is not known is empty; lists are joined by spaces.
std::string to_csv(const BenchReport& report);

}  // namespace knap
