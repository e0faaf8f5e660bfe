// The draft model's logits along a draft, row after row, into scratch rows of the cache. A draft
// takes a pass of one row per token; where there is a guess of what it will be, the first pass runs
// the guess along, and its rows serve for as long as the draft follows it (methods 3.20).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "graph/forward.h"

namespace knap {

class ExitHead;

// Rows whose leading layers the draft computed exactly, as the whole model would: the layers before
// the first one that the plan cheapens. Verification need not compute those layers again
// (docs/methods.md, "Exact leading layers").
struct ReusableRows {
    int n_layers = 0;  // leading layers; 0: nothing can be reused
    int n_rows = 0;    // the pending token, then drafts
    // Which streams of those rows there are (after how many modules): those that the round needs
    // from inside these layers, and last the one that verification resumes from.
    std::span<const int> captures{};
    std::span<const std::vector<float>> streams{};  // [n_embd, n_rows] each
};

class DraftRows {
  public:
    explicit DraftRows(Forward& forward) : forward_(forward) {}

    // What drafts (DraftWithPlan), and the streams that the round wants (Proposal::captures).
    // Plan and head must outlive the draft.
    void set_model(const ModulePlan& plan, ExitHead* head, std::span<const int> captures);
    // A draft begins: its first token goes to cache row `first_row`, and `guess` may follow it. The
    // guess must outlive the draft, and its rows fit the cache.
    void begin(int first_row, std::span<const Token> guess);
    // Logits after `token`, the next one of the draft. Valid until the next call; empty: cancelled.
    std::span<const float> next(Token token);

    // Whether the device can go on by itself, with the token that it finds likeliest: nothing is
    // guessed, and the model's own head chooses.
    bool can_chain() const;
    struct Chosen {
        Token token;
        float probability;
    };
    // The likeliest token after `token`, the next one of the draft. At most `n_steps` steps are
    // chained where none is left of those before. Nullopt: cancelled.
    std::optional<Chosen> next_choice(Token token, int n_steps);

    // Of the rows that next() or next_choice() gave; valid until the next begin().
    ReusableRows reusable() const;

  private:
    bool is_computed(Token token) const;
    int row_of_pass() const;
    bool run_pass(Token token);
    bool run_chain(Token token, int n_steps);
    void keep_streams(std::size_t row);

    Forward& forward_;
    const ModulePlan* plan_ = nullptr;
    ExitHead* head_ = nullptr;
    int n_exact_layers_ = 0;
    std::vector<int> captures_;  // of every pass: those of ReusableRows
    int first_row_ = 0;
    std::span<const Token> guess_;
    std::size_t n_given_ = 0;                  // rows that next() gave
    std::vector<std::vector<float>> streams_;  // of those, by capture: [n_embd, n_given_]
    // The latest pass. Its rows are the draft's up to the first whose token is another one.
    std::vector<Token> tokens_;    // [n_rows]; empty before the first pass
    std::vector<int> logit_rows_;  // 0, 1, 2, ... [n_rows]
    std::size_t n_before_ = 0;     // rows of the draft before the pass
    ForwardResult result_;
    std::span<const float> logits_;  // [n_vocab, n_rows]
    ChainResult chain_;              // of n_rows steps, where the latest pass is a chain
};

}  // namespace knap
