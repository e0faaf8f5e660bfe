// Timing things side by side: alternating, warm, medians.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/clock.h"

namespace knap::bench {

struct Contestant {
    std::string name;
    std::function<void()> run;
    std::vector<double> times_ms{};
};

// Between two values, a value between them.
inline double quantile(std::vector<double> values, double q) {
    std::sort(values.begin(), values.end());
    const double place = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
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

// What `contestant` took relative to `base`, run by run: neighbours in time, so a slow moment is in
// both.
inline std::vector<double> relative_times(const Contestant& contestant, const Contestant& base) {
    std::vector<double> ratios;
    std::transform(contestant.times_ms.begin(), contestant.times_ms.end(), base.times_ms.begin(),
                   std::back_inserter(ratios), std::divides<>());
    return ratios;
}

}  // namespace knap::bench
