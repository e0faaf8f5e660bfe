// Keeps the committed rows of several rounds as the whole model's verification computed them, so
// that a search on these rows needs no pass for them (docs/methods.md, "Schedule", "Level
// knapsack"). Rounds are consecutive, so the rows are the most recent committed positions, in order
// and without gaps.
#pragma once

#include "knap/types.h"

#include "decode/strategy.h"
#include "search/target_rows.h"

namespace knap {

class KeptRows {
  public:
    explicit KeptRows(int n_embd) : n_embd_(n_embd) {}

    // Adds the pending token and the accepted drafts of a round that captured every stream. `row`
    // is the cache row of `pending`.
    void add(const RoundOutcome& outcome, Token pending, int row);
    // Drops the oldest rows beyond `max_rows`.
    void limit(int max_rows);
    void clear() { rows_ = {}; }

    const TargetRows& rows() const { return rows_; }

  private:
    int n_embd_;
    TargetRows rows_;
};

}  // namespace knap
