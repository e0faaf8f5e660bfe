#include "tools/measure/statistics.h"

#include <cmath>
#include <cstddef>
#include <iterator>
#include <set>
#include <tuple>

namespace knap {
namespace {

// 97.5 % quantile of Student's t with `n - 1` degrees of freedom. Requires `n >= 2`.
double student_t(std::size_t n) {
    constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447,
                                 2.365,  2.306, 2.262, 2.228, 2.201};
    constexpr double kNormal = 1.960;
    if (n - 2 < std::size(kTable)) {
        return kTable[n - 2];
    }
    // Cornish-Fisher expansion around the normal quantile: correct to three decimals here.
    const auto freedom = static_cast<double>(n - 1);
    return kNormal + 2.372 / freedom + 2.823 / (freedom * freedom);
}

double mean_logarithm(std::span<const double> ratios) {
    double sum = 0;
    for (const double ratio : ratios) {
        sum += std::log(ratio);
    }
    return sum / static_cast<double>(ratios.size());
}

// The standard error of the mean logarithm.
double standard_error(std::span<const double> ratios, double mean) {
    double squares = 0;
    for (const double ratio : ratios) {
        squares += (std::log(ratio) - mean) * (std::log(ratio) - mean);
    }
    const auto n = static_cast<double>(ratios.size());
    return std::sqrt(squares / (n - 1) / n);
}

}  // namespace

Interval geometric_mean(std::span<const double> ratios) {
    const double mean = mean_logarithm(ratios);
    const double half =
        ratios.size() > 1 ? student_t(ratios.size()) * standard_error(ratios, mean) : 0;
    return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

double distinct_trigrams(std::span<const Token> tokens) {
    if (tokens.size() < 3) {
        return 1;
    }
    std::set<std::tuple<Token, Token, Token>> distinct;
    for (std::size_t i = 0; i + 3 <= tokens.size(); ++i) {
        distinct.emplace(tokens[i], tokens[i + 1], tokens[i + 2]);
    }
    return static_cast<double>(distinct.size()) / static_cast<double>(tokens.size() - 2);
}

double pearson(std::span<const double> a, std::span<const double> b) {
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

}  // namespace knap
