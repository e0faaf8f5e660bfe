// What a strategy achieved with several sessions at once, over its turns.
#pragma once

#include "tools/measure/report/bench_report.h"

namespace knap {

// Medians over the turns, but the largest of the largest gaps.
LoadTimes times_over_turns(const BenchLoad& load);

// The load of a row's strategy and rule; nullptr when the report has none.
const BenchLoad* load_of(const BenchReport& report, const BenchRow& row);

}  // namespace knap
