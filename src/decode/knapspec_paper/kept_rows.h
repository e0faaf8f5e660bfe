// The rows that stay of several rounds, as the whole model's verification saw them: what a search
// for plans is made on (methods 3.4). Rounds follow one another, so the rows are the most recent
// committed positions, in order and without a gap.
#pragma once

#include "knap/types.h"

#include "decode/strategy.h"
#include "search/target_rows.h"

namespace knap {

class KeptRows {
  public:
    KeptRows(int n_embd, int n_vocab) : n_embd_(n_embd), n_vocab_(n_vocab) {}

    // The pending token and the accepted drafts of a round that drafted a chain and captured every
    // stream. `pending` lay at `row` of the cache.
    void add(const RoundOutcome& outcome, Token pending, int row);
    // Leaves out the oldest rows beyond so many.
    void limit(int max_rows);
    void clear() { rows_ = {}; }

    const TargetRows& rows() const { return rows_; }

  private:
    int n_embd_;
    int n_vocab_;
    TargetRows rows_;
};

}  // namespace knap
