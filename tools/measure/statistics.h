// Numbers over repeated measurements and over prompts.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

struct Interval {
    double mean = 0;
    double low = 0;
    double high = 0;
};

// Geometric mean of ratios, one at least, with its 95 % interval: Student's, from the spread of
// their logarithms. One ratio alone has no spread to tell.
Interval geometric_mean(std::span<const double> ratios);

// Distinct runs of three tokens over all of them: low where a text loops, and loops are easy to
// draft (methods W25).
double distinct_trigrams(std::span<const Token> tokens);

// How well two lists of numbers go together: Pearson's correlation.
double pearson(std::span<const double> a, std::span<const double> b);

}  // namespace knap
