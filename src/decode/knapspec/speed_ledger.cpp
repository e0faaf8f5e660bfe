#include "decode/knapspec/speed_ledger.h"

#include <cmath>

namespace knap {

namespace {

// About 30 rounds are remembered; with fewer, a run of rejected drafts would look like a trend.
constexpr double kSpeedMemory = 0.97;
constexpr int kMinRounds = 8;
// Below this speedup, fewer rounds suffice.
constexpr int kMinBadRounds = 4;
constexpr double kBadSpeedup = 0.7;

bool is_time(double ms) {
    return std::isfinite(ms) && ms > 0;
}

}  // namespace

void SpeedLedger::add(double ms, double plain_ms) {
    if (!is_time(ms) || !is_time(plain_ms)) {
        return;
    }
    ms_ = kSpeedMemory * ms_ + ms;
    plain_ms_ = kSpeedMemory * plain_ms_ + plain_ms;
    ++n_rounds_;
}

double SpeedLedger::speedup() const {
    return n_rounds_ > 0 ? plain_ms_ / ms_ : 1.0;
}

bool SpeedLedger::is_losing() const {
    return (n_rounds_ >= kMinRounds && speedup() < 1.0) ||
           (n_rounds_ >= kMinBadRounds && speedup() < kBadSpeedup);
}

}  // namespace knap
