// The stop rule of Draft&Verify (docs/methods.md, "Adaptive threshold"): a draft ends after a token
// less probable than a threshold that follows the acceptance rate. The threshold rises while
// acceptance is below its target. It falls while acceptance is high enough and drafts end before
// the cap. Arithmetic only.
#pragma once

#include "sampling/stop_rule.h"

namespace knap {

struct ThresholdOptions {
    int cap = 12;         // longest draft, in tokens
    float target = 0.9f;  // acceptance rate to aim for
    float step = 0.01f;   // eps: how far a round moves the threshold, before smoothing
    float start = 0.6f;
    float acceptance_memory = 0.5f;  // beta1: weight of the old mean acceptance
    float threshold_memory = 0.9f;   // beta2: weight of the old threshold
};

class AdaptiveThreshold {
  public:
    explicit AdaptiveThreshold(const ThresholdOptions& options);

    // For the next draft, of at most `n_room` tokens.
    StopRule stop_rule(int n_room) const;
    // Records a verification that accepted `n_accepted` of `n_drafted` tokens. Ignores rounds
    // without a draft.
    void observe(int n_accepted, int n_drafted);

  private:
    double moved(int n_drafted) const;

    ThresholdOptions options_;
    double acceptance_ = 0;  // AR
    double value_;           // th
};

}  // namespace knap
