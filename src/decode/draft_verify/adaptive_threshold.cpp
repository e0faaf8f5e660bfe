#include "decode/draft_verify/adaptive_threshold.h"

#include <algorithm>

namespace knap {

namespace {

double blended(double memory, double before, double now) {
    return memory * before + (1 - memory) * now;
}

}  // namespace

AdaptiveThreshold::AdaptiveThreshold(const ThresholdOptions& options)
    : options_(options), value_(static_cast<double>(options.start)) {}

StopRule AdaptiveThreshold::stop_rule(int n_room) const {
    return {
        .n_max = std::min(options_.cap, n_room),
        .exit_confidence = static_cast<float>(value_),
        .confidence_of = ConfidenceOf::drafted,
    };
}

void AdaptiveThreshold::observe(int n_accepted, int n_drafted) {
    if (n_drafted == 0) {
        return;
    }
    const double accepted = static_cast<double>(n_accepted) / n_drafted;
    acceptance_ = blended(static_cast<double>(options_.acceptance_memory), acceptance_, accepted);
    const double smoothed =
        blended(static_cast<double>(options_.threshold_memory), value_, moved(n_drafted));
    // Probabilities lie within 0..1; a threshold outside would only take longer to come back.
    value_ = std::clamp(smoothed, 0.0, 1.0);
}

// th': the threshold before smoothing.
double AdaptiveThreshold::moved(int n_drafted) const {
    const double step = static_cast<double>(options_.step);
    if (acceptance_ < static_cast<double>(options_.target)) {
        return value_ + step;
    }
    return n_drafted == options_.cap ? value_ : value_ - step;
}

}  // namespace knap
