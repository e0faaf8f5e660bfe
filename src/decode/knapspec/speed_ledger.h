// What a draft source really gains: the time of its rounds compared with that of plain decoding for
// the same tokens. It decides whether the source stays in use (docs/methods.md, "Never slower").
#pragma once

namespace knap {

class SpeedLedger {
  public:
    // Records a round that took `ms` and emitted what plain decoding writes in `plain_ms`. Ignores
    // impossible times.
    void add(double ms, double plain_ms);
    void clear() { *this = {}; }

    double speedup() const;  // recent rounds weigh most; 1 before any
    // Whether the rounds so far leave little doubt that the source is slower than plain decoding.
    bool is_losing() const;

  private:
    double ms_ = 0;
    double plain_ms_ = 0;
    int n_rounds_ = 0;
};

}  // namespace knap
