// Timing things side by side: alternating, warm, medians.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/quantile.h"

namespace knap::bench {

struct Contestant {
    std::string name;
    std::function<void()> run;
    std::vector<double> times_ms{};
};

// Half the distance between the quartiles, relative to the median.
inline double spread(const std::vector<double>& values) {
    return quartile_spread(values) / median(values);
}

// Runs every contestant once to warm up, then `n_rounds` rounds of one run each, in turn: what
// disturbs the machine for a while disturbs all of them.
inline void alternate(std::vector<Contestant>& contestants, int n_rounds) {
    for (Contestant& contestant : contestants) {
        contestant.run();
    }
    for (int round = 0; round < n_rounds; ++round) {
        for (Contestant& contestant : contestants) {
            const Stopwatch watch;
            contestant.run();
            contestant.times_ms.push_back(watch.elapsed_ms());
        }
    }
}

// What `contestant` took relative to `base`, run by run: neighbours in time, so a slow moment is in
// both.
inline std::vector<double> relative_times(const Contestant& contestant, const Contestant& base) {
    std::vector<double> ratios;
    std::transform(contestant.times_ms.begin(), contestant.times_ms.end(), base.times_ms.begin(),
                   std::back_inserter(ratios), std::divides<>());
    return ratios;
}

}  // namespace knap::bench
