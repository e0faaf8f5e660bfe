// The token that a row of logits chooses when nothing is drawn.
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

// The lowest id of the largest logit. `logits` is not empty.
Token choice_of(std::span<const float> logits);

// Appends the choice of each of `n_rows` rows: [n_vocab, n_rows].
void append_choices(std::span<const float> logits, int n_rows, std::vector<Token>& choices);

}  // namespace knap
