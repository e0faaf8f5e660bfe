// The draft model's logits along a draft, row after row, into scratch rows of the cache. A draft
// takes a pass of one row per token; where there is a guess of what it will be, the first pass runs
// the guess along, and its rows serve for as long as the draft follows it (methods 3.20).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "graph/forward.h"

namespace knap {

// Rows that drafting has already computed as the whole model would: the layers before the first one
// that the plan cheapens are exact (methods 3.15, O13). Verification takes them up from there.
struct ExactRows {
    int n_layers = 0;               // leading layers; 0: nothing is exact
    int n_rows = 0;                 // the pending token, then drafts
    std::span<const float> hidden;  // the stream after those layers: [n_embd, n_rows]
};

class DraftRows {
  public:
    explicit DraftRows(Forward& forward) : forward_(forward) {}

    // A draft begins: its first token goes to cache row `first_row`, and `guess` may follow it.
    // Plan and guess must outlive the draft, and the guess's rows fit the cache.
    void begin(const ModulePlan& plan, int first_row, std::span<const Token> guess);
    // Logits after `token`, the next one of the draft. Valid until the next call; empty: cancelled.
    std::span<const float> next(Token token);

    // Of the rows that next() gave; valid until the next begin().
    ExactRows exact() const;

  private:
    bool is_computed(Token token) const;
    bool run_pass(Token token);
    void keep_hidden(std::size_t row);

    Forward& forward_;
    const ModulePlan* plan_ = nullptr;
    int first_row_ = 0;
    std::span<const Token> guess_;
    int n_exact_layers_ = 0;
    std::size_t n_given_ = 0;    // rows that next() gave
    std::vector<float> hidden_;  // of those, after the exact layers: [n_embd, n_given_]
    // The latest pass. Its rows are the draft's up to the first whose token is another one.
    std::vector<Token> tokens_;    // [n_rows]; empty before the first pass
    std::vector<int> logit_rows_;  // 0, 1, 2, ... [n_rows]
    std::size_t n_before_ = 0;     // rows of the draft before the pass
    ForwardResult result_;
};

}  // namespace knap
