#include "decode/knapspec/speed_ledger.h"

#include <algorithm>
#include <cmath>

namespace knap {

namespace {

// Rounds that speedup() remembers, and over which the spread of losses is measured.
constexpr double kMemory = 30;
constexpr double kSpeedMemory = 1 - 1 / kMemory;
// A source is losing when its debt exceeds kPatience steps and kSpread standard deviations of a
// round's loss. A source that gains 0.2 standard deviations a round is suspended by mistake once in
// a thousand rounds (`Regret` tests).
constexpr double kPatience = 1.5;
constexpr double kSpread = 3;
// How many rounds the expected variance is worth. Long drafts lose in many rounds and gain much in
// others, so the first round alone proves nothing.
constexpr double kExpectedWeight = 4;

bool is_time(double ms) {
    return std::isfinite(ms) && ms > 0;
}

}  // namespace

void SpeedLedger::add(const RoundTime& round) {
    if (!is_time(round.ms) || !is_time(round.plain_ms) || !is_time(round.step_ms)) {
        return;
    }
    ms_ = kSpeedMemory * ms_ + round.ms;
    plain_ms_ = kSpeedMemory * plain_ms_ + round.plain_ms;

    // Page's test (1954): a sum of losses that does not fall below 0.
    const double loss = (round.ms - round.plain_ms) / round.step_ms;
    debt_ = std::max(0.0, debt_ + loss);
    expected_ = round.variance;
    n_rounds_ = std::min(n_rounds_ + 1, kMemory);
    const double before = loss - mean_loss_;
    mean_loss_ += before / n_rounds_;
    variance_ += (before * (loss - mean_loss_) - variance_) / n_rounds_;
}

double SpeedLedger::speedup() const {
    return n_rounds_ > 0 ? plain_ms_ / ms_ : 1.0;
}

bool SpeedLedger::is_losing() const {
    const double n_free = std::max(0.0, n_rounds_ - 1);  // around a mean that was measured too
    const double variance =
        (kExpectedWeight * expected_ + n_rounds_ * variance_) / (kExpectedWeight + n_free);
    return debt_ > kPatience + kSpread * std::sqrt(variance);
}

}  // namespace knap
