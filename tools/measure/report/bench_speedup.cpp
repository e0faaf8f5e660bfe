#include "tools/measure/report/bench_speedup.h"

#include <vector>

#include "tools/measure/statistics.h"

namespace knap {

BenchSpeedup mean_of_turns(std::span<const double> ratios) {
    const Interval interval = geometric_mean(ratios);
    if (ratios.size() == 1) {
        return {.mean = interval.mean};
    }
    return {.mean = interval.mean, .low = interval.low, .high = interval.high};
}

BenchSpeedup speedup_of(std::span<const BenchTurn> turns) {
    return request_speedup_of(turns, /*prefill_ms=*/0, /*plain_prefill_ms=*/0);
}

BenchSpeedup request_speedup_of(std::span<const BenchTurn> turns,
                                double prefill_ms,
                                double plain_prefill_ms) {
    std::vector<double> ratios;
    for (const BenchTurn& turn : turns) {
        ratios.push_back((plain_prefill_ms + turn.plain_ms) / (prefill_ms + turn.decode_ms));
    }
    return mean_of_turns(ratios);
}

}  // namespace knap
