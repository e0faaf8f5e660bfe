// Times contestants side by side: they alternate, after a warm-up, and medians are compared.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/quantile.h"

namespace knap::bench {

struct Contestant {
    std::string name;
    std::function<void()> run;
    std::vector<double> times_ms{};
};

// Half the interquartile range, relative to the median.
inline double spread(const std::vector<double>& values) {
    return quartile_spread(values) / median(values);
}

// The threads of a contestant on the CPU may spin for some milliseconds after it ran.
inline constexpr std::chrono::milliseconds kSpinTime{10};

// Runs every contestant once to warm up, then in `n_rounds` rounds of one run each, so that a
// disturbance of the machine affects all of them. Waits for `pause` before each run.
inline void alternate(std::vector<Contestant>& contestants,
                      int n_rounds,
                      std::chrono::milliseconds pause = kSpinTime) {
    for (Contestant& contestant : contestants) {
        contestant.run();
    }
    for (int round = 0; round < n_rounds; ++round) {
        for (Contestant& contestant : contestants) {
            std::this_thread::sleep_for(pause);
            const Stopwatch watch;
            contestant.run();
            contestant.times_ms.push_back(watch.elapsed_ms());
        }
    }
}

// The times of `contestant` relative to `base`, run by run. The two runs of a pair are close in
// time, so a slow moment affects both.
inline std::vector<double> relative_times(const Contestant& contestant, const Contestant& base) {
    std::vector<double> ratios;
    std::transform(contestant.times_ms.begin(), contestant.times_ms.end(), base.times_ms.begin(),
                   std::back_inserter(ratios), std::divides<>());
    return ratios;
}

}  // namespace knap::bench
