// The decisions of a strategy, each with its predicted and its measured speed.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "knap/types.h"

namespace knap {

struct Reason {
    enum class Kind {
        not_measured,  // the cost of passes is not known yet
        switched_off,  // plans are switched off
        too_short,     // the context is too short for windows
        cannot_pay,    // no plan would pay off even if nearly all its drafts were accepted
        not_known,     // no plan is known to pay off
        out_of_plans,  // every plan is suspended or amounts to the whole model
        lost_time,     // the plan in use lost time
        pays,          // the plan in use pays off
    };
    Kind kind{};
    std::string text{};
};

class DecisionLog {
  public:
    void begin();
    // Records a decision that holds from its token on, for a reason of this kind. If source and
    // kind are those of the last decision, nothing is recorded, even if numbers in the text have
    // changed.
    void decide(Decision decision, Reason::Kind kind);
    // Records a round that took `ms` and emitted what plain decoding writes in `plain_ms`. Ignored
    // unless both are positive.
    void add_round(double ms, double plain_ms);

    std::span<const Decision> decisions() const { return decisions_; }

  private:
    std::vector<Decision> decisions_;
    Reason::Kind last_kind_{};  // of the last decision
    double ms_ = 0;             // since the last decision
    double plain_ms_ = 0;
};

}  // namespace knap
