// When a draft stops in Draft&Verify (methods 7): after a token less probable than a threshold that
// follows acceptance. It rises while fewer drafts are accepted than wanted, and falls while enough
// are and drafts end before they are as long as they may be. Arithmetic alone.
#pragma once

#include "decode/stop_rule.h"

namespace knap {

struct ThresholdOptions {
    int cap = 12;         // most tokens of a draft
    float target = 0.9f;  // acceptance that is aimed at
    float step = 0.01f;   // eps: how far a round moves the threshold, before smoothing
    float start = 0.6f;
    float acceptance_memory = 0.5f;  // b1: what stays of the mean acceptance after a round
    float threshold_memory = 0.9f;   // b2: what stays of the threshold after a round
};

class AdaptiveThreshold {
  public:
    explicit AdaptiveThreshold(const ThresholdOptions& options);

    // For the next draft, of at most `n_room` tokens.
    StopRule stop_rule(int n_room) const;
    // After a verification that kept `n_accepted` of `n_drafted` tokens. A round without a draft
    // says nothing.
    void observe(int n_accepted, int n_drafted);

  private:
    double moved(int n_drafted) const;

    ThresholdOptions options_;
    double acceptance_ = 0;  // AR
    double value_;           // th
};

}  // namespace knap
