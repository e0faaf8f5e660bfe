// A benchmark as Markdown: model, machine and settings, a table of means, a table of rows.
#pragma once

#include <string>

#include "tools/measure/report/bench_report.h"

namespace knap {

std::string to_markdown(const BenchReport& report);

}  // namespace knap
