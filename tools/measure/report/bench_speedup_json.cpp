#include "tools/measure/report/bench_speedup_json.h"

#include <limits>

#include "tools/measure/report/bench_json.h"

namespace knap {
namespace {

// With few turns an interval can be arbitrarily wide.
double bound_in(const nlohmann::json& object, const char* name) {
    return number_in(object, name, 0, std::numeric_limits<double>::max());
}

}  // namespace

nlohmann::ordered_json to_json(const BenchSpeedup& speedup) {
    return {{"mean", speedup.mean}, {"low", or_null(speedup.low)}, {"high", or_null(speedup.high)}};
}

BenchSpeedup speedup_from(const nlohmann::json& object) {
    return {.mean = positive_in(object, "mean"),
            .low = unless_null(object, "low", bound_in),
            .high = unless_null(object, "high", bound_in)};
}

}  // namespace knap
