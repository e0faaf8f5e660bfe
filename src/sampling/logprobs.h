// Log-probabilities of tokens: the log-softmax of a row of raw logits, in natural logarithms.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/ranking.h"

namespace knap {

struct RowLogprobs {
    float logprob = 0;                  // of the token that was asked for
    std::span<const TokenLogprob> top;  // most probable first; the lowest id wins a tie
};

// Reuses its memory from row to row. The results depend only on the row.
class Logprobs {
  public:
    // `n_top`: how many of the most probable tokens to list.
    explicit Logprobs(std::size_t n_top) : n_top_(n_top) {}

    // `logits` [n_vocab]. The list leaves out tokens at -infinity. It is valid until the next call.
    // Throws when the row has no usable maximum (row_maximum.h).
    RowLogprobs of(std::span<const float> logits, Token token);

  private:
    std::size_t n_top_;
    Ranking ranking_;
    std::vector<TokenLogprob> top_;
};

}  // namespace knap
