#include "decode/verifier.h"

#include <algorithm>
#include <numeric>

#include "kv/sequence.h"

namespace knap {

ForwardResult Verifier::run(Token pending,
                            const DraftTree& tree,
                            const ReusableRows& reusable,
                            std::span<const int> captures,
                            int n_best) {
    set_rows(pending, tree);
    n_best_ = n_best <= forward_.max_best() ? n_best : 0;
    const ForwardResult result = run_rows(tree, reusable, captures);
    const auto is_unknown = [&](int row) {
        return result.best.row(static_cast<std::size_t>(row)).empty();
    };
    if (!result.is_complete || n_best_ == 0 || std::ranges::none_of(rows_, is_unknown)) {
        return result;
    }
    // More tokens than expected tie, or a logit is no number: rare enough to compute the rows
    // again.
    n_best_ = 0;
    return run_rows(tree, reusable, captures);
}

ForwardResult Verifier::run_rows(const DraftTree& tree,
                                 const ReusableRows& reusable,
                                 std::span<const int> captures) {
    return reusable.n_rows > 0 ? run_resumed(tree, reusable, captures) : run_whole(tree, captures);
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
        .n_best = n_best_,
    });
}

ForwardResult Verifier::run_resumed(const DraftTree& tree,
                                    const ReusableRows& reusable,
                                    std::span<const int> captures) {
    streams_.assign(reusable.streams.begin(), reusable.streams.end());
    const auto others = std::span(tokens_).subspan(static_cast<std::size_t>(reusable.n_rows));
    if (!others.empty()) {
        const ForwardResult lower = forward_.run({
            .tokens = others,
            .first_row = cache_.committed() + reusable.n_rows,
            .layout = layout(tree),
            .exit_layer = reusable.n_layers,
            .captures = reusable.captures,
        });
        if (!lower.is_complete) {
            return lower;
        }
        for (std::size_t i = 0; i < streams_.size(); ++i) {
            const std::span<const float> rows = lower.captures[i];
            streams_[i].insert(streams_[i].end(), rows.begin(), rows.end());
        }
    }
    const std::size_t n_lower = streams_.size() - 1;  // captures inside the reused layers
    ForwardResult upper = forward_.run({
        .hidden = streams_.back(),
        .first_row = cache_.committed(),
        .layout = layout(tree),
        .entry_layer = reusable.n_layers,
        .captures = captures.subspan(n_lower),
        .logit_rows = rows_,
        .n_best = n_best_,
    });
    all_views_.assign(streams_.begin(), streams_.begin() + static_cast<std::ptrdiff_t>(n_lower));
    all_views_.insert(all_views_.end(), upper.captures.begin(), upper.captures.end());
    upper.captures = all_views_;
    return upper;
}

}  // namespace knap
