// Drafting with a cheaper version of the model: one row at a time, into scratch rows of the cache
// above the committed ones. Row `committed` holds the pending token and row committed + i the i-th
// draft, whatever the plan skips: verification overwrites them all.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/strategy.h"
#include "sampling/draft_sampler.h"

namespace knap {

class Forward;
class KvCache;

// Rows that drafting has already computed as the whole model would: the layers before the first one
// that the plan cheapens are exact (methods 3.15, O13). Verification takes them up from there.
struct ExactRows {
    int n_layers = 0;               // leading layers; 0: nothing is exact
    int n_rows = 0;                 // the pending token, then drafts
    std::span<const float> hidden;  // the stream after those layers: [n_embd, n_rows]
};

class Drafter {
  public:
    // Everything given must outlive the object; `is_end_of_text` says which tokens end a draft.
    Drafter(Forward& forward,
            const KvCache& cache,
            Sampler& sampler,
            AcceptanceRule rule,
            const std::function<bool(Token)>& is_end_of_text);

    // Drafts after `pending` into `tree`: a chain of first choices, then their siblings as leaves,
    // at most `max_nodes` in all. The sampler's history ends with the pending token, before and
    // after. False: cancelled.
    bool draft(Token pending, const DraftWithPlan& how, int max_nodes, DraftTree& tree);

    // Of the latest draft(); valid until the next.
    const ExactRows& exact_rows() const { return exact_; }

  private:
    struct Leaf {
        Token token;
        int parent;
    };

    bool draft_chain(Token pending, const DraftWithPlan& how, int max_nodes, DraftTree& tree);
    // Logits of the draft model after `token` at cache row `row`; empty: cancelled.
    std::span<const float> run_row(Token token, int row, const ModulePlan& plan);

    Forward& forward_;
    const KvCache& cache_;
    Sampler& sampler_;
    DraftSampler choices_;
    const std::function<bool(Token)>& is_end_of_text_;
    std::vector<Leaf> leaves_;  // siblings of the chain's tokens
    std::vector<float> hidden_;
    ExactRows exact_;
};

}  // namespace knap
