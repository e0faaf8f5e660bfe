// What stands in every benchmark beside its rows: machine, model, and the costs of its profile.
#pragma once

#include "knap/knap.h"

#include "tools/measure/report/bench_report.h"

namespace knap {

// The machine that runs the program. The device that computes may be another one, such as a GPU.
BenchHost describe_host();

// Without rows; of the settings it fills in those that the engine knows.
BenchReport describe_bench(const Engine& engine);

}  // namespace knap
