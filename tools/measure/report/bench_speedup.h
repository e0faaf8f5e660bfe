// How much faster than plain decoding the turns of a row were: decoding alone, and the whole
// request with its prompt.
#pragma once

#include <span>

#include "tools/measure/report/bench_report.h"

namespace knap {

// One turn or more.
BenchSpeedup speedup_of(std::span<const BenchTurn> turns);

// A request reads its prompt in `prefill_ms` and then decodes; with plain decoding, reading it
// takes `plain_prefill_ms`.
BenchSpeedup request_speedup_of(std::span<const BenchTurn> turns,
                                double prefill_ms,
                                double plain_prefill_ms);

}  // namespace knap
