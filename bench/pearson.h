// How well two lists of numbers go together.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace knap::bench {

inline double pearson(std::span<const double> a, std::span<const double> b) {
    const auto n = static_cast<double>(a.size());
    double sum_a = 0;
    double sum_b = 0;
    double aa = 0;
    double bb = 0;
    double ab = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum_a += a[i];
        sum_b += b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
        ab += a[i] * b[i];
    }
    return (ab - sum_a * sum_b / n) /
           std::sqrt((aa - sum_a * sum_a / n) * (bb - sum_b * sum_b / n));
}

}  // namespace knap::bench
