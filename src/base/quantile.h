// Quantiles of small samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace knap {

// Interpolates linearly between neighbouring values. Needs at least one value.
inline double quantile(std::vector<double> values, double q) {
    std::ranges::sort(values);
    const double place = q * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

inline double median(std::vector<double> values) {
    return quantile(std::move(values), 0.5);
}

// Half of the distance between the quartiles.
inline double quartile_spread(const std::vector<double>& values) {
    return (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
}

}  // namespace knap
