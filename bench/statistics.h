// Numbers over the prompts of a cell.
#pragma once

#include <cmath>
#include <cstddef>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "knap/types.h"

namespace knap::bench {

struct Interval {
    double mean = 0;
    double low = 0;
    double high = 0;
};

// 97.5 % quantile of Student's t with `n - 1` degrees of freedom.
inline double student_t(std::size_t n) {
    constexpr double kTable[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20};
    constexpr double kNormal = 1.96;
    constexpr std::size_t kEntries = sizeof(kTable) / sizeof(kTable[0]);
    return n >= 2 && n - 2 < kEntries ? kTable[n - 2] : kNormal;
}

// Geometric mean of ratios with its 95 % interval, from the spread of their logarithms.
inline Interval geometric_mean(std::span<const double> ratios) {
    double sum = 0;
    double squares = 0;
    for (const double ratio : ratios) {
        sum += std::log(ratio);
        squares += std::log(ratio) * std::log(ratio);
    }
    const auto n = static_cast<double>(ratios.size());
    const double mean = sum / n;
    const double variance =
        ratios.size() > 1 ? std::max(0.0, squares - n * mean * mean) / (n - 1) : 0;
    const double half = student_t(ratios.size()) * std::sqrt(variance / n);
    return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

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

// Distinct runs of three tokens over all of them: low where a text loops, and loops are easy to
// draft (methods W25).
inline double distinct_trigrams(std::span<const Token> tokens) {
    if (tokens.size() < 3) {
        return 1;
    }
    std::set<std::tuple<Token, Token, Token>> distinct;
    for (std::size_t i = 0; i + 3 <= tokens.size(); ++i) {
        distinct.emplace(tokens[i], tokens[i + 1], tokens[i + 2]);
    }
    return static_cast<double>(distinct.size()) / static_cast<double>(tokens.size() - 2);
}

}  // namespace knap::bench
