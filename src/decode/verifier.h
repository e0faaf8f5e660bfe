// Verifies a draft: one pass of the whole model over the pending token and all drafted tokens. The
// pass overwrites the drafts' scratch rows with the whole model's keys and values.
//
// If drafting has already computed the leading layers of some rows, only the other rows go through
// those layers, and then all rows through the rest. This is early-exit verification, generalised to
// every plan that begins with whole layers (docs/methods.md, "Exact leading layers").
#pragma once

#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/drafter.h"
#include "forward/forward.h"
#include "sampling/draft_tree.h"

namespace knap {

class Verifier {
  public:
    Verifier(Forward& forward, const Sequence& cache) : forward_(forward), cache_(cache) {}

    // Returns the logits of every row, the pending token's first, then those of the tree's nodes,
    // and the requested captures of all rows. With `n_best` above 0 the best tokens of every row
    // stand for its logits, if the device ranks so many. Valid until the next pass. The result is
    // incomplete when cancelled.
    ForwardResult run(Token pending,
                      const DraftTree& tree,
                      const ReusableRows& reusable,
                      std::span<const int> captures,
                      int n_best = 0);

  private:
    void set_rows(Token pending, const DraftTree& tree);
    AttentionLayout layout(const DraftTree& tree) const;
    ForwardResult run_rows(const DraftTree& tree,
                           const ReusableRows& reusable,
                           std::span<const int> captures);
    ForwardResult run_whole(const DraftTree& tree, std::span<const int> captures);
    ForwardResult run_resumed(const DraftTree& tree,
                              const ReusableRows& reusable,
                              std::span<const int> captures);

    Forward& forward_;
    const Sequence& cache_;
    int n_best_ = 0;             // of the latest pass
    std::vector<Token> tokens_;  // [n_rows]
    std::vector<int> parents_;   // [n_rows], as AttentionLayout expects them
    std::vector<int> rows_;      // 0, 1, 2, ... [n_rows]
    // The streams of a resumed pass: those of ReusableRows, for all rows.
    std::vector<std::vector<float>> streams_;        // [n_embd, n_rows] each
    std::vector<std::span<const float>> all_views_;  // captures of a resumed pass
};

}  // namespace knap
