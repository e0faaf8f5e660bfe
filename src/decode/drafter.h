// Drafts with a cheaper version of the model: each token is its choice after the one before. Cache
// row `committed` holds the pending token and row committed + i the i-th draft, whatever the plan
// skips. Verification overwrites all of them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/chain_length.h"
#include "decode/draft_rows.h"
#include "decode/strategy.h"
#include "sampling/draft_sampler.h"

namespace knap {

class Sequence;

class Drafter {
  public:
    // All arguments must outlive the object. `is_end_of_text` tells which tokens end a draft.
    Drafter(Forward& forward,
            const Sequence& cache,
            Sampler& sampler,
            AcceptanceRule rule,
            const std::function<bool(Token)>& is_end_of_text);

    // Drafts after `pending` into `tree`: a chain of first choices, then their siblings as leaves,
    // at most `max_nodes` nodes in all. The sampler's history ends with the pending token, before
    // and after the call. `captures` are the streams that the round needs (Proposal::captures);
    // drafting keeps those that it computes exactly. If the sampler has a constraint, the draft
    // ends before the first token that does not fit, or after it if that was drawn at random: the
    // ratio rule must see every draw. Returns false when cancelled.
    bool draft(Token pending,
               const DraftWithPlan& how,
               std::span<const int> captures,
               int max_nodes,
               DraftTree& tree);

    // The rows of the latest draft(); valid until the next one.
    ReusableRows reusable_rows() const { return rows_.reusable(); }
    // Confidences of the chain's tokens; empty if neither the stop rule nor the widths need them.
    std::span<const float> confidences() const { return confidences_; }
    // How many leading tokens of the chain equal the guess.
    int n_guessed() const { return n_guessed_; }

  private:
    struct Leaf {
        Token token;
        int parent;
    };

    // The next token of a draft.
    struct Step {
        Token token;
        float confidence;                     // 1 if it was not computed
        const DraftChoice* choice = nullptr;  // null: the device chose
    };
    std::optional<Step> choose(Token token,
                               const DraftWithPlan& how,
                               int n_drafted,
                               int n_children);
    std::optional<Step> choose_on_device(Token token,
                                         const DrawRule& rule,
                                         const StopState& stop,
                                         int n_drafted);
    std::optional<DrawRule> chain_rule(const DraftWithPlan& how) const;
    void add_siblings(const DraftChoice& choice,
                      std::size_t width,
                      int parent,
                      TokenConstraint* constraint,
                      DraftTree& tree);

    std::span<const Token> useful_part(std::span<const Token> guess, int n_max) const;
    bool draft_chain(Token pending, const DraftWithPlan& how, int max_nodes, DraftTree& tree);
    float confidence_for(const DraftWithPlan& how,
                         std::span<const float> logits,
                         const DraftChoice& choice);

    const Sequence& cache_;
    Sampler& sampler_;
    DraftSampler choices_;
    const std::function<bool(Token)>& is_end_of_text_;
    DraftRows rows_;
    std::vector<Leaf> leaves_;  // siblings of the chain's tokens
    std::vector<float> confidences_;
    ChainLength chain_length_;
    int n_guessed_ = 0;
};

}  // namespace knap
