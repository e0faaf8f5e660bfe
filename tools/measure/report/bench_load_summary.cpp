#include "tools/measure/report/bench_load_summary.h"

#include <algorithm>

#include "base/quantile.h"

namespace knap {
namespace {

std::vector<double> over_turns(const BenchLoad& load, double LoadTimes::*member) {
    std::vector<double> values;
    for (const LoadTimes& turn : load.turns) {
        values.push_back(turn.*member);
    }
    return values;
}

}  // namespace

LoadTimes times_over_turns(const BenchLoad& load) {
    const auto median_of = [&](double LoadTimes::*member) {
        return median(over_turns(load, member));
    };
    return {.n_tokens = load.turns.back().n_tokens,
            .wall_ms = median_of(&LoadTimes::wall_ms),
            .tokens_per_second = median_of(&LoadTimes::tokens_per_second),
            .first_median_ms = median_of(&LoadTimes::first_median_ms),
            .first_p95_ms = median_of(&LoadTimes::first_p95_ms),
            .gap_median_ms = median_of(&LoadTimes::gap_median_ms),
            .gap_p95_ms = median_of(&LoadTimes::gap_p95_ms),
            .gap_max_ms = std::ranges::max(over_turns(load, &LoadTimes::gap_max_ms))};
}

const BenchLoad* load_of(const BenchReport& report, const BenchRow& row) {
    const auto found = std::ranges::find_if(report.loads, [&](const BenchLoad& load) {
        return load.strategy == row.strategy && load.acceptance == row.acceptance;
    });
    return found == report.loads.end() ? nullptr : &*found;
}

}  // namespace knap
