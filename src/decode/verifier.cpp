#include "decode/verifier.h"

#include <numeric>

#include "kv/kv_cache.h"

namespace knap {

ForwardResult Verifier::run(Token pending,
                            const DraftTree& tree,
                            const ExactRows& exact,
                            std::span<const int> captures) {
    set_rows(pending, tree);
    // A capture below the layer to resume at needs every row there.
    const bool resumes =
        exact.n_rows > 0 && (captures.empty() || captures.front() >= 2 * exact.n_layers);
    return resumes ? run_resumed(tree, exact, captures) : run_whole(tree, captures);
}

void Verifier::set_rows(Token pending, const DraftTree& tree) {
    tokens_.assign(1, pending);
    tokens_.insert(tokens_.end(), tree.tokens().begin(), tree.tokens().end());
    parents_.assign(1, -1);
    for (int node = 0; node < tree.n_nodes(); ++node) {
        parents_.push_back(tree.parent(node) + 1);  // row 0 is the pending token
    }
    rows_.resize(tokens_.size());
    std::iota(rows_.begin(), rows_.end(), 0);
}

AttentionLayout Verifier::layout(const DraftTree& tree) const {
    if (tree.is_chain()) {
        return {};
    }
    return {.kind = AttentionLayout::Kind::tree, .parents = parents_};
}

ForwardResult Verifier::run_whole(const DraftTree& tree, std::span<const int> captures) {
    return forward_.run({
        .tokens = tokens_,
        .first_row = cache_.committed(),
        .layout = layout(tree),
        .captures = captures,
        .logit_rows = rows_,
    });
}

ForwardResult Verifier::run_resumed(const DraftTree& tree,
                                    const ExactRows& exact,
                                    std::span<const int> captures) {
    const int capture = 2 * exact.n_layers;
    const ForwardResult lower = forward_.run({
        .tokens = std::span(tokens_).subspan(static_cast<std::size_t>(exact.n_rows)),
        .first_row = cache_.committed() + exact.n_rows,
        .layout = layout(tree),
        .exit_layer = exact.n_layers,
        .captures = std::span(&capture, 1),
    });
    if (!lower.is_complete) {
        return lower;
    }
    hidden_.assign(exact.hidden.begin(), exact.hidden.end());
    hidden_.insert(hidden_.end(), lower.captures.front().begin(), lower.captures.front().end());
    return forward_.run({
        .hidden = hidden_,
        .first_row = cache_.committed(),
        .layout = layout(tree),
        .entry_layer = exact.n_layers,
        .captures = captures,
        .logit_rows = rows_,
    });
}

}  // namespace knap
