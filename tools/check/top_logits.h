// How much two computations of the same row of logits differ where it matters for the choice of a
// token: among the tokens that are likely to be chosen. Another token can be chosen only where the
// difference of two logits changes by more than the gap between them. What all logits have in
// common cancels out, and logits far below the best do not count.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace knap {

// The largest logits of a reference row.
class TopLogits {
  public:
    // `reference` must outlive the object.
    explicit TopLogits(std::span<const float> reference);

    // By how much `row` changes the difference of two logits, at most: over all pairs of the top
    // logits and the best one of `row`. NaN if one of them is.
    double gap_change(std::span<const float> row) const;

  private:
    std::span<const float> reference_;
    std::vector<std::size_t> tokens_;
};

}  // namespace knap
