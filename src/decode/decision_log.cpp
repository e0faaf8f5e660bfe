#include "decode/decision_log.h"

#include <utility>

#include "base/log.h"

namespace knap {

void DecisionLog::begin() {
    decisions_.clear();
    ms_ = 0;
    plain_ms_ = 0;
}

void DecisionLog::decide(int token, std::string way, Reason reason, double predicted) {
    if (!decisions_.empty() && decisions_.back().way == way && last_kind_ == reason.kind) {
        return;
    }
    log_info("token ", token, ": ", way, ": ", reason.text);
    decisions_.push_back({.token = token,
                          .way = std::move(way),
                          .reason = std::move(reason.text),
                          .predicted = predicted});
    last_kind_ = reason.kind;
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
