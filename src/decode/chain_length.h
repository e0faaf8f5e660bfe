// How many draft steps to chain on the device before the host looks at the tokens they chose. Chain
// length follows recent draft lengths: steps after the one that ends a draft are wasted, and every
// look at the results costs a round trip.
#pragma once

#include <algorithm>
#include <cmath>

namespace knap {

class ChainLength {
  public:
    // Steps to chain after `n_drafted` drafted tokens, when at most `n_left` more may follow.
    // `may_stop_early`: the stop rule may end the draft after any token.
    int next(int n_drafted, int n_left, bool may_stop_early) const {
        if (!may_stop_early) {
            return n_left;
        }
        const int n_expected = static_cast<int>(std::lround(mean_));
        return std::clamp(n_expected - n_drafted, 1, n_left);
    }

    // Records the length of a finished draft.
    void observe(int n_drafted) { mean_ += kWeight * (n_drafted - mean_); }

  private:
    static constexpr double kWeight = 0.2;  // of the latest draft
    double mean_ = 4;
};

}  // namespace knap
