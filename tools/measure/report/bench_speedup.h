// The speedup of a row's turns over plain decoding: of decoding only, and of the whole request with
// its prefill.
#pragma once

#include <span>

#include "tools/measure/report/bench_report.h"

namespace knap {

// Of ratios measured in turns, at least one: a single one has no interval.
BenchSpeedup mean_of_turns(std::span<const double> ratios);

// Both require at least one turn.
BenchSpeedup speedup_of(std::span<const BenchTurn> turns);

// The prefill takes `prefill_ms`, and `plain_prefill_ms` with plain decoding.
BenchSpeedup request_speedup_of(std::span<const BenchTurn> turns,
                                double prefill_ms,
                                double plain_prefill_ms);

}  // namespace knap
