// Tells the observer of a request about the tokens of the answer.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "knap/types.h"

#include "decode/strategy.h"
#include "sampling/logprobs.h"

namespace knap {

// A token that the whole model decided on.
struct DecidedToken {
    Token token = 0;
    TokenOrigin origin = TokenOrigin::plain;
    // [n_vocab] of the whole model, from the row before the token; empty unless RoundOptions asks
    // for whole rows
    std::span<const float> logits;
};

// The `i`-th token that a round emitted; valid as long as the outcome is.
DecidedToken emitted_token(const RoundOutcome& outcome, std::size_t i);

class TokenEvents {
  public:
    // Throws when `n_logprobs` is out of range (GenerateOptions). `observer` must outlive the
    // object.
    TokenEvents(const Observer& observer, int n_logprobs);

    // Calls Observer::on_token, if there is one. Log-probabilities are computed only for it.
    void report(const DecidedToken& decided, int position);

  private:
    const Observer& observer_;
    std::optional<Logprobs> logprobs_;  // empty: none are wanted
};

}  // namespace knap
