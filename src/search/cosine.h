// How alike residual streams are. The numbers are f32, their products are summed in double: the
// streams that a search compares are often within 1e-3 of each other (methods W17).
#pragma once

#include <span>

namespace knap {

// Of the angle between two rows of the same length. A row of zeros has no direction and is like
// nothing: 0. Not a number where one of them holds something that is not.
double cosine(std::span<const float> a, std::span<const float> b);

// Summed over `n_rows` rows that lie one behind the other: [row_size, n_rows] both.
double sum_of_cosines(std::span<const float> a, std::span<const float> b, int n_rows);

}  // namespace knap
