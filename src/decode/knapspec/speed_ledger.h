// What a draft source really gains: the time of its rounds compared with that of plain decoding for
// the same tokens. A sequential test decides whether the source stays in use, so a source that
// loses much is noticed after a few rounds, and one that loses little after more (docs/methods.md,
// "Never slower").
#pragma once

namespace knap {

struct RoundTime {
    double ms = 0;
    double plain_ms = 0;  // of plain decoding, for the tokens that the round emitted
    double step_ms = 0;   // of one step of plain decoding
    double variance = 0;  // of the number of tokens, as it was expected before the round
};

class SpeedLedger {
  public:
    // Ignores impossible times.
    void add(const RoundTime& round);
    void clear() { *this = {}; }

    double speedup() const;  // recent rounds weigh most; 1 before any
    // Whether what was lost since the source last did best exceeds what chance explains.
    bool is_losing() const;

  private:
    double ms_ = 0;
    double plain_ms_ = 0;
    double debt_ = 0;       // in steps, lost since the best moment
    double mean_loss_ = 0;  // of a round, in steps
    double variance_ = 0;   // around it
    double expected_ = 0;   // the same as it was expected before the latest round
    double n_rounds_ = 0;   // that count towards these; at most kMemory
};

}  // namespace knap
