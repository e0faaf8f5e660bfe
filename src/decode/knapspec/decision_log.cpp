#include "decode/knapspec/decision_log.h"

#include <utility>

#include "base/log.h"

namespace knap {

void DecisionLog::begin() {
    decisions_.clear();
    ms_ = 0;
    plain_ms_ = 0;
}

void DecisionLog::decide(Decision decision, Reason::Kind kind) {
    if (!decisions_.empty() && decisions_.back().source == decision.source && last_kind_ == kind) {
        return;
    }
    log_info("token ", decision.token, ": ", decision.source, ": ", decision.reason);
    decisions_.push_back(std::move(decision));
    last_kind_ = kind;
    ms_ = 0;
    plain_ms_ = 0;
}

void DecisionLog::add_round(double ms, double plain_ms) {
    if (decisions_.empty() || !(ms > 0) || !(plain_ms > 0)) {
        return;
    }
    ms_ += ms;
    plain_ms_ += plain_ms;
    decisions_.back().measured = plain_ms_ / ms_;
}

}  // namespace knap
