// The part of a benchmark that is not its rows: machine, model, settings and the measured costs of
// the profile.
#pragma once

#include "knap/knap.h"

#include "tools/measure/report/bench_report.h"

namespace knap {

// The machine that runs the program. The device that computes may be another one, such as a GPU.
BenchHost describe_host();

// A report without rows. Fills in only the settings that the engine knows.
BenchReport describe_bench(const Engine& engine);

}  // namespace knap
