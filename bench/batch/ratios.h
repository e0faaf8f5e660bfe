// How repetitions of a measurement are printed: the median with its spread.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/quantile.h"

namespace knap::bench {

// "1.52 [1.49, 1.60]"
inline std::string range_text(double middle, double low, double high, int n_decimals) {
    char text[96];
    std::snprintf(text, sizeof(text), "%.*f [%.*f, %.*f]", n_decimals, middle, n_decimals, low,
                  n_decimals, high);
    return text;
}

// The median with the lowest and the highest value, for a few values.
inline std::string spread_text(const std::vector<double>& values, int n_decimals = 2) {
    return range_text(median(values), std::ranges::min(values), std::ranges::max(values),
                      n_decimals);
}

// The median with the quartiles, for many values.
inline std::string quartile_text(const std::vector<double>& values, int n_decimals = 2) {
    return range_text(median(values), quantile(values, 0.25), quantile(values, 0.75), n_decimals);
}

// Pair by pair: the two values of a pair were measured one after the other.
inline std::vector<double> ratios_of(const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ratios.push_back(a[i] / b[i]);
    }
    return ratios;
}

}  // namespace knap::bench
