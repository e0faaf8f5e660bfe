// Statistics over repeated measurements and over prompts.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

struct Interval {
    double mean = 0;
    double low = 0;
    double high = 0;
};

// Geometric mean of ratios, at least one, with its 95 % interval: Student's t on their logarithms.
// The interval of a single ratio is empty (low == high).
Interval geometric_mean(std::span<const double> ratios);

// Distinct trigrams / all trigrams: low when a text loops, and loops are easy to draft
// (docs/methods.md, "Text that loops"). 1 for fewer than three tokens.
double distinct_trigrams(std::span<const Token> tokens);

// Pearson's correlation of two lists of equal length.
double pearson(std::span<const double> a, std::span<const double> b);

}  // namespace knap
