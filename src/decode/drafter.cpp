#include "decode/drafter.h"

#include <algorithm>

#include "graph/forward.h"
#include "kv/kv_cache.h"

namespace knap {

Drafter::Drafter(Forward& forward,
                 const KvCache& cache,
                 Sampler& sampler,
                 AcceptanceRule rule,
                 const std::function<bool(Token)>& is_end_of_text)
    : forward_(forward),
      cache_(cache),
      sampler_(sampler),
      choices_(sampler, rule),
      is_end_of_text_(is_end_of_text) {}

bool Drafter::draft(Token pending, const DraftWithPlan& how, int max_nodes, DraftTree& tree) {
    tree.clear();
    leaves_.clear();
    hidden_.clear();
    exact_ = {.n_layers = exact_layers(*how.plan)};
    if (!draft_chain(pending, how, max_nodes, tree)) {
        return false;
    }
    // After the chain, so that the chain's rows lie in the cache where plain decoding has them.
    for (const Leaf& leaf : leaves_) {
        tree.add(leaf.token, leaf.parent);
    }
    exact_.hidden = hidden_;
    return true;
}

bool Drafter::draft_chain(Token pending, const DraftWithPlan& how, int max_nodes, DraftTree& tree) {
    HistoryExtension ancestors(sampler_);
    StopRule rule = how.stop;
    rule.n_max = std::min(rule.n_max, max_nodes);
    StopState stop(rule);
    Token token = pending;
    int parent = kPendingNode;
    for (bool goes_on = stop.starts(); goes_on;) {
        // The pending token lies at `committed`, and its successor's position is one more.
        const int row = cache_.committed() + tree.n_nodes();
        const std::span<const float> logits = run_row(token, row, *how.plan);
        if (logits.empty()) {
            return false;
        }
        // Where nodes are short, siblings go before depth does.
        const int n_reserved = rule.n_max + static_cast<int>(leaves_.size());
        const int n_children = std::min(how.width, 1 + max_nodes - n_reserved);
        const DraftChoice& choice = choices_.choose(logits, row + 1, n_children);
        token = choice.tokens.front();
        const int node = tree.add(token, parent);
        if (choice.is_drawn) {
            tree.set_drawn_from(parent, choice.q);
        }
        for (std::size_t i = 1; i < choice.tokens.size(); ++i) {
            leaves_.push_back({choice.tokens[i], parent});
        }
        parent = node;
        ancestors.accept(token);
        goes_on = stop.goes_on(rule.needs_confidence() ? confidence(logits, token) : 1.0f,
                               is_end_of_text_(token));
    }
    return true;
}

std::span<const float> Drafter::run_row(Token token, int row, const ModulePlan& plan) {
    const int only_row = 0;
    const int capture = 2 * exact_.n_layers;
    const ForwardResult result = forward_.run({
        .tokens = std::span(&token, 1),
        .plan = &plan,
        .first_row = row,
        .captures = std::span(&capture, exact_.n_layers > 0 ? 1 : 0),
        .logit_rows = std::span(&only_row, 1),
    });
    if (!result.is_complete) {
        return {};
    }
    if (exact_.n_layers > 0) {
        const std::span<const float> hidden = result.captures.front();
        hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
        ++exact_.n_rows;
    }
    return result.logits;
}

}  // namespace knap
