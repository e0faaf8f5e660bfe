// Runs residual streams through the output norm and the head only: the tokens that the model would
// choose if it ended there.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class Forward;

// Calls `visit` with the logits [n_vocab] of every row of `hidden` [n_embd, n_rows], in order. The
// logits are valid during the call. Returns false when cancelled.
bool visit_head_rows(Forward& forward,
                     std::span<const float> hidden,
                     const std::function<void(std::span<const float> logits)>& visit);

// The head's argmax for each row (docs/methods.md, "Acceptance estimate"). Empty when cancelled.
std::vector<Token> choices_of(Forward& forward, std::span<const float> hidden);
// The same for rows of the stream bank, by index (BankRows).
std::vector<Token> choices_of(Forward& forward, std::span<const int> bank_rows);

}  // namespace knap
