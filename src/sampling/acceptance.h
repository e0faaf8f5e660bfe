// The acceptance rule, for chains and trees: which drafted tokens the whole model keeps, and the
// one token that follows them. Whatever was drafted, and however the draft was cut short, the
// tokens that come out are distributed as plain decoding's; under every rule but `ratio` they are
// the very tokens of plain decoding with the same seed (methods 1.5, 1.6, and 5 for siblings).
//
// At temperature 0 every rule is the greedy one: a draft is kept when it is the target's argmax.
//   shared_noise  the target's choice is plain decoding's draw at that position; a draft is kept
//                 when it is that token. Drafts are drawn with the same noise, so they often agree.
//   equality      the same, with drafts drawn independently.
//   ratio         a draft drawn from q is kept with probability min(1, p/q); after a rejection the
//                 rest of p, norm(max(0, p - q)), judges the next sibling or gives the token.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/draft_tree.h"
#include "sampling/ratio_rule.h"
#include "sampling/sampler.h"

namespace knap {

struct AcceptanceOptions {
    AcceptanceRule rule = AcceptanceRule::shared_noise;
    // A projection, not decoding: the first child of each node is kept with this probability.
    std::optional<double> assumed_rate{};
    bool measures_gaps = false;  // Verdict::gaps is filled where the rule has gaps
};

struct Verdict {
    std::vector<int> path;  // accepted nodes of the tree, from the first draft down
    Token next = 0;         // the correction after the path, or the bonus token after a whole one
    // Per emitted token (path, then next): by how much, in logits, the target preferred it to the
    // second choice. Below the rounding between passes of other shapes it is a near-tie. Empty for
    // the ratio rule at a temperature, whose tokens nobody chose, and for a projection.
    std::vector<float> gaps;
};

class Acceptance {
  public:
    // `sampler` transforms and draws; its history ends with the pending token whenever judge() is
    // called, and does so again when it returns. Must outlive the object.
    Acceptance(Sampler& sampler, const AcceptanceOptions& options);

    // `logits` [n_vocab, n_nodes + 1]: row 0 follows the pending token, row i + 1 follows node i.
    // `position` is that of the first draft, counted from the start of the conversation. The
    // verdict is valid until the next call.
    const Verdict& judge(const DraftTree& tree,
                         std::span<const float> logits,
                         std::int64_t position);

  private:
    // A node whose children are judged; kPendingNode for first drafts.
    struct Place {
        const DraftTree& tree;
        int node;
        std::span<const float> row;  // [n_vocab] logits that follow the node
        std::int64_t position;       // of its children
    };

    // The child that is kept; kNoNode: none, and verdict_.next follows the node.
    int follow(const Place& place);
    int follow_choice(const Place& place);
    int follow_ratio(const Place& place);
    int follow_assumption(const Place& place);

    Sampler& sampler_;
    AcceptanceOptions options_;
    Verdict verdict_;
    Distribution p_;
    RatioTrial trial_;
};

}  // namespace knap
