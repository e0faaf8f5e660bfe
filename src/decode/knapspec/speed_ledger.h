// What a draft source really gives: the time of its rounds beside the time that plain decoding
// would have taken for the same tokens. The last word on whether it goes on (never slower).
#pragma once

namespace knap {

class SpeedLedger {
  public:
    // A round took `ms` and emitted tokens that plain decoding writes in `plain_ms`. Times that
    // cannot be are left out.
    void add(double ms, double plain_ms);
    void clear() { *this = {}; }

    double speedup() const;  // recent rounds weigh most; 1 before any
    // Whether the rounds so far leave little doubt that it is slower than plain decoding.
    bool is_losing() const;

  private:
    double ms_ = 0;
    double plain_ms_ = 0;
    int n_rounds_ = 0;
};

}  // namespace knap
