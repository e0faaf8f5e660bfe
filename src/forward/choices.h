// The greedy choice of a token from logits.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

// The argmax; the lowest id wins a tie. `logits` must not be empty.
Token choice_of(std::span<const float> logits);

// Appends the choice for each row of `logits` [n_vocab, n_rows].
void append_choices(std::span<const float> logits, int n_rows, std::vector<Token>& choices);

}  // namespace knap
