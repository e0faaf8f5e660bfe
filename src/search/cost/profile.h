// Measuring what passes cost, with the engine's own passes: the samples of a CostProfile.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "search/cost/cost_profile.h"
#include "search/cost/probes.h"

namespace knap {

class Forward;
class KvCache;

// Runs the probe once in the rows above its context, which it overwrites: they must be scratch. The
// cache's rows below are read as they are. Nullopt: cancelled.
std::optional<double> measure_ms(Forward& forward, const Probe& probe);

struct ProfileOptions {
    int max_context = 0;
    int max_rows = 16;
    double seconds = 15;  // for all of it: repetitions fill it
    PartBytes bytes{};    // of the model, for the profile
    std::function<void(double fraction)> on_progress{};
};

// Writes all of the cache's rows (memory that was never written would be read too fast) and
// measures: every probe once to warm up, then round after round over all of them, at least three,
// so that a slow moment of the machine falls on all alike. The cache is empty afterwards. Contexts
// are as long as the cache allows. Nullopt: cancelled.
std::optional<CostProfile> measure_profile(Forward& forward,
                                           KvCache& cache,
                                           std::span<const int> layer_classes,
                                           const ProfileOptions& options);

}  // namespace knap
