// Compares rows of logits.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

namespace knap::test {

Token argmax(std::span<const float> row);  // the lowest id wins a tie
float top_two_gap(std::span<const float> row);
float max_abs_difference(std::span<const float> a, std::span<const float> b);

}  // namespace knap::test
