// Streams put through the final norm and the head, and nothing else: what a model would say if it
// ended there.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class Forward;

// Calls `visit` with the logits [n_vocab] of every row of `hidden` [n_embd, n_rows], in order; they
// are valid during the call. False: cancelled.
bool visit_head_rows(Forward& forward,
                     std::span<const float> hidden,
                     const std::function<void(std::span<const float> logits)>& visit);

// The head's choice for each of these rows (methods 3.9). Empty: cancelled.
std::vector<Token> choices_of(Forward& forward, std::span<const float> hidden);
// The same for rows of the bank, by number (BankRows).
std::vector<Token> choices_of(Forward& forward, std::span<const int> bank_rows);

}  // namespace knap
