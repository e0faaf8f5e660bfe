// How many draft steps to chain on the device before the program looks at what they chose: as many
// as drafts have been long of late. Steps after the one that ends a draft are computed for nothing;
// to ask after every step costs a round trip each.
#pragma once

#include <algorithm>
#include <cmath>

namespace knap {

class ChainLength {
  public:
    // Steps to chain when `n_drafted` tokens are drafted and at most `n_left` more are wanted.
    // `may_stop_early`: a stop rule looks at every token.
    int next(int n_drafted, int n_left, bool may_stop_early) const {
        if (!may_stop_early) {
            return n_left;
        }
        const int n_expected = static_cast<int>(std::lround(mean_));
        return std::clamp(n_expected - n_drafted, 1, n_left);
    }

    // A draft ended with so many tokens.
    void observe(int n_drafted) { mean_ += kWeight * (n_drafted - mean_); }

  private:
    static constexpr double kWeight = 0.2;  // of the latest draft
    double mean_ = 4;
};

}  // namespace knap
