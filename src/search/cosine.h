// Cosine similarity of residual streams. Products of f32 values are summed in double, because the
// streams that a search compares are often within 1e-3 of each other (docs/methods.md, "Limits of
// the published method": half-precision scores).
#pragma once

#include <span>

namespace knap {

// The cosine of two rows of the same length: 0 if one of them is all zeros, NaN if one of them
// contains a value that is not finite.
double cosine(std::span<const float> a, std::span<const float> b);

// The sum of the cosines of `n_rows` row pairs. Both arguments are [row_size, n_rows].
double sum_of_cosines(std::span<const float> a, std::span<const float> b, int n_rows);

}  // namespace knap
