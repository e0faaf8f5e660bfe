// Timing two things side by side: alternating, warm, medians.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace knap::bench {

struct Contestant {
    std::string name;
    std::function<void()> run;
    std::vector<double> times_ms{};
};

inline double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

inline double median(const std::vector<double>& values) {
    return quantile(values, 0.5);
}

// Half the distance between the quartiles, relative to the median.
inline double spread(const std::vector<double>& values) {
    return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / median(values);
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

}  // namespace knap::bench
