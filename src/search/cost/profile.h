// Measures the samples of a CostProfile with the engine's own passes.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "search/cost/cost_profile.h"
#include "search/cost/probes.h"

namespace knap {

class Forward;
class Sequence;

struct PassTime {
    double ms = 0;
    bool was_disturbed = false;  // the system took a core away meanwhile
};

// Runs the probe once in the rows after its context, which it overwrites: they must be scratch. The
// cache rows below are read as they are. Returns nullopt when cancelled.
std::optional<PassTime> measure_pass(Forward& forward, const Probe& probe);
using MeasurePass = std::function<std::optional<PassTime>(const Probe& probe)>;

// The median and the spread of a probe's times. Times that were disturbed are left out,
// unless too few others remain: then all count, and the sample was measured on a busy machine.
CostSample summary_of(const Probe& probe, std::span<const PassTime> times);

struct ProfileOptions {
    int max_context = 0;
    int max_rows = 16;
    double seconds = 15;                       // total; filled with repetitions
    PartBytes bytes{};                         // of the model, stored in the profile
    std::vector<int> layer_windows{};          // likewise
    std::vector<ExpertShare> expert_shares{};  // likewise
    std::function<void(double fraction)> on_progress{};
};

// Writes all rows of the cache, because reading memory that was never written is too fast. Then
// runs every probe once to warm up and measures all probes in rounds, at least three, so that a
// slow moment of the machine affects all of them. The cache is empty afterwards. Contexts are
// limited by the size of the cache. Returns nullopt when cancelled.
std::optional<CostProfile> measure_profile(Forward& forward,
                                           Sequence& cache,
                                           std::span<const int> layer_classes,
                                           const ProfileOptions& options);

}  // namespace knap
