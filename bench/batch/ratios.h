// How repetitions of a measurement are printed: the median with the lowest and the highest value.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/quantile.h"

namespace knap::bench {

// "1.52 [1.49, 1.60]"
inline std::string spread_text(const std::vector<double>& values, int n_decimals = 2) {
    char text[96];
    std::snprintf(text, sizeof(text), "%.*f [%.*f, %.*f]", n_decimals, median(values), n_decimals,
                  std::ranges::min(values), n_decimals, std::ranges::max(values));
    return text;
}

// "1.52 [1.50, 1.55]": the median with the quartiles, for many values.
inline std::string quartile_text(const std::vector<double>& values, int n_decimals = 2) {
    char text[96];
    std::snprintf(text, sizeof(text), "%.*f [%.*f, %.*f]", n_decimals, median(values), n_decimals,
                  quantile(values, 0.25), n_decimals, quantile(values, 0.75));
    return text;
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
