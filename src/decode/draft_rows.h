// Runs the draft model along a draft and returns its logits row by row. The keys and values go to
// scratch rows of the cache. A draft takes a one-row pass per token. With a guess of the draft, the
// first pass also computes the rows of the guess, which serve while the draft follows it
// (docs/methods.md, "Cascade").
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "forward/forward.h"

namespace knap {

class ExitHead;

// Rows whose leading layers the draft computed exactly: the layers before the first one that the
// plan makes cheaper. Verification need not compute those layers again (docs/methods.md, "Exact
// leading layers").
struct ReusableRows {
    int n_layers = 0;  // leading layers; 0: nothing can be reused
    int n_rows = 0;    // the pending token, then drafts
    // The captured streams, each given by the number of modules before it: those that the round
    // needs from inside these layers, then the one that verification resumes from.
    std::span<const int> captures{};
    std::span<const std::vector<float>> streams{};  // [n_embd, n_rows] each
};

class DraftRows {
  public:
    explicit DraftRows(Forward& forward) : forward_(forward) {}

    // Sets what drafts (see DraftWithPlan) and the streams that the round needs
    // (Proposal::captures). Plan and head must outlive the draft.
    void set_model(const ModulePlan& plan, ExitHead* head, std::span<const int> captures);
    // Begins a draft. Its first token goes to cache row `first_row`, and the guess to the rows
    // after it. The guess must outlive the draft, and its rows must fit the cache.
    void begin(int first_row, std::span<const Token> guess);
    // Returns the logits after `token`, the next token of the draft. Valid until the next call;
    // empty when cancelled.
    std::span<const float> next(Token token);

    // Whether the device can draft several tokens by itself, each chosen after the step before. It
    // needs the model's own whole head, and for a guess a device whose chains stop.
    bool can_chain(const DrawRule& rule) const;
    // Whether a chain ends where the stop rule says, so that it may be as long as the draft.
    bool stops_by_itself() const { return forward_.chains_stop(); }
    struct Chosen {
        Token token;
        float probability;
    };
    // Returns the choice after `token`, the next token of the draft. If all chained steps are used
    // up, chains at most `n_steps` new ones. `stop` is the draft so far: a device that can ends the
    // chain by it. Returns nullopt when cancelled.
    std::optional<Chosen> next_choice(Token token,
                                      const DrawRule& rule,
                                      const StopState& stop,
                                      int n_steps);

    // The rows that next() or next_choice() returned; valid until the next begin().
    ReusableRows reusable() const;

  private:
    bool is_computed(Token token) const;
    int row_of_pass() const;
    bool run_pass(Token token);
    bool run_chain(Token token, const DrawRule& rule, const StopState& stop, int n_steps);
    void keep_streams(std::size_t row);

    Forward& forward_;
    const ModulePlan* plan_ = nullptr;
    ExitHead* head_ = nullptr;
    int n_exact_layers_ = 0;
    std::vector<int> captures_;  // of every pass; see ReusableRows
    int first_row_ = 0;
    std::span<const Token> guess_;
    std::size_t n_given_ = 0;                  // rows returned so far
    std::vector<std::vector<float>> streams_;  // of those rows, by capture: [n_embd, n_given_]
    // The latest pass. Its rows belong to the draft up to the first token that differs.
    std::vector<Token> tokens_;    // [n_rows]; empty before the first pass
    std::vector<int> logit_rows_;  // 0, 1, 2, ... [n_rows]
    std::size_t n_before_ = 0;     // rows of the draft before the pass
    ForwardResult result_;
    std::span<const float> logits_;  // [n_vocab, n_rows]
    ChainResult chain_;              // of n_rows steps, if the latest pass is a chain
};

}  // namespace knap
