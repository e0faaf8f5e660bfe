// The acceptance rule, for chains and trees: which drafted tokens the whole model accepts, and the
// token that follows them. Whatever was drafted, and however the draft was cut short, the emitted
// tokens have the distribution of plain decoding. Under every rule but `ratio` they are the tokens
// of plain decoding with the same seed (docs/methods.md, "Greedy acceptance", "Ratio rule", "Trees
// and siblings").
//
// At temperature 0 every rule is greedy: a draft is accepted when it is the whole model's argmax.
//   shared_noise  the whole model's choice is plain decoding's draw at that position; a draft is
//                 accepted when it is that token. Drafts are drawn with the same noise, so they
//                 often agree.
//   equality      the same, with drafts drawn independently.
//   ratio         a draft drawn from q is accepted with probability min(1, p/q); after a rejection
//                 the residual norm(max(0, p - q)) judges the next sibling or gives the token.
//
// A constraint acts on the whole model's choices and on p alone. Judging follows one path, so the
// sampler's one constraint moves along with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/draft_tree.h"
#include "sampling/logit_rows.h"
#include "sampling/ratio_rule.h"
#include "sampling/sampler.h"

namespace knap {

struct AcceptanceOptions {
    AcceptanceRule rule = AcceptanceRule::shared_noise;
    // For a projection: accepts the first child of each node with this probability.
    std::optional<double> assumed_rate{};
    bool measures_gaps = false;  // fills Verdict::gaps, if the rule has gaps
};

struct Verdict {
    std::vector<int> path;  // accepted nodes of the tree, from the first draft down
    Token next = 0;         // the correction after the path, the bonus token after a draft accepted
                            // to its end, or an accepted draft that ends a constrained text
    // Per emitted token (path, then next): by how much, in logits, the whole model preferred it to
    // its second choice. A gap below the rounding differences between passes is a near tie. Empty
    // under the ratio rule when sampling, where tokens are not the model's choice, and for a
    // projection.
    std::vector<float> gaps;
};

class Acceptance {
  public:
    // `sampler` transforms and draws. Its history ends with the pending token before and after
    // judge(). Its constraint, if there is one, has then moved past the accepted path, which
    // becomes text next. It must outlive the object.
    Acceptance(Sampler& sampler, const AcceptanceOptions& options);

    // How many of the best tokens of a row it needs; 0: the row itself.
    int n_best_needed() const;

    // `rows` [n_nodes + 1]: row 0 follows the pending token, row i + 1 follows node i. `position`
    // is that of the first draft, counted from the start of the conversation. The result is valid
    // until the next call.
    const Verdict& judge(const DraftTree& tree, const LogitRows& rows, std::int64_t position);
    // The same for whole rows: `logits` [n_vocab, n_nodes + 1].
    const Verdict& judge(const DraftTree& tree,
                         std::span<const float> logits,
                         std::int64_t position);

  private:
    // A node whose children are judged; kPendingNode for the first drafts.
    struct Place {
        const DraftTree& tree;
        int node;
        LogitRow row;           // logits that follow the node
        std::int64_t position;  // of its children
    };

    // Returns the accepted child, or kNoNode; then verdict_.next follows the node.
    int follow(const Place& place);
    int follow_choice(const Place& place);
    bool follows_ratio() const;
    int follow_ratio(const Place& place);
    int follow_assumption(const Place& place);

    Sampler& sampler_;
    AcceptanceOptions options_;
    Verdict verdict_;
    Distribution p_;
    RatioTrial trial_;
};

}  // namespace knap
