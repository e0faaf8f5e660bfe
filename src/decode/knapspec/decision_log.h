// The choices that a strategy makes, with what each was expected to give and what it gave.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "knap/types.h"

namespace knap {

struct Reason {
    enum class Kind {
        not_measured,  // what passes cost
        switched_off,  // plans
        too_short,     // the context, for windows
        cannot_pay,    // any plan, even if nearly all its drafts were accepted
        not_known,     // of any plan that it pays
        out_of_plans,  // all are suspended, or the whole model again
        lost_time,     // the plan in use
        pays,          // the plan in use
    };
    Kind kind{};
    std::string text{};
};

class DecisionLog {
  public:
    void begin();
    // `decision` holds from its token on, because of a reason of this kind. A decision for the same
    // source and a reason of the same kind is not repeated, though numbers in the text may have
    // changed.
    void decide(Decision decision, Reason::Kind kind);
    // A round took `ms` and emitted what plain decoding writes in `plain_ms`; both positive.
    void add_round(double ms, double plain_ms);

    std::span<const Decision> decisions() const { return decisions_; }

  private:
    std::vector<Decision> decisions_;
    Reason::Kind last_kind_{};  // of the last decision
    double ms_ = 0;             // since the last decision
    double plain_ms_ = 0;
};

}  // namespace knap
