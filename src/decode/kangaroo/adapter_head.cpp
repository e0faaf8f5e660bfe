#include "decode/kangaroo/adapter_head.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/adapter.h"
#include "search/target_rows.h"

namespace knap {

AdapterHead::AdapterHead(const AdapterParts& parts)
    : adapter_(parts.adapter),
      rows_(adapter_.config(), parts.devices, parts.capacity, parts.n_ubatch, parts.turns),
      cache_(rows_.sequence()),
      forward_(rows_.forward()) {}

int AdapterHead::exit_layer() const {
    return adapter_.exit_layer();
}

bool AdapterHead::follow(std::span<const Token> text,
                         Forward& target,
                         const Sequence& target_cache) {
    KNAP_ASSERT(text.size() == static_cast<std::size_t>(target_cache.committed()),
                "every token of the text has a committed row");
    keep_common_beginning(text);
    draft_end_ = static_cast<int>(text.size());
    return tokens_.size() == text.size() || catch_up(text, target, target_cache);
}

void AdapterHead::keep_common_beginning(std::span<const Token> text) {
    const auto n_common =
        static_cast<std::size_t>(std::ranges::mismatch(tokens_, text).in1 - tokens_.begin());
    const std::size_t n_computed = std::min(n_common, static_cast<std::size_t>(cache_.committed()));
    // Waiting rows are of use only if the draft directly follows them.
    const bool may_wait = n_common == tokens_.size() && n_common == text.size();
    if (!may_wait) {
        waiting_.clear();
        tokens_.resize(n_computed);
    }
    cache_.truncate(static_cast<int>(n_computed));
}

bool AdapterHead::catch_up(std::span<const Token> text,
                           Forward& target,
                           const Sequence& target_cache) {
    const int capture = 2 * exit_layer();
    while (tokens_.size() < text.size()) {
        const int first_row = cache_.committed();
        const int n_rows =
            std::min({static_cast<int>(text.size()) - first_row, scratch_rows(target, target_cache),
                      forward_.max_rows(first_row)});
        if (n_rows == 0) {
            return false;
        }
        const auto tokens =
            text.subspan(static_cast<std::size_t>(first_row), static_cast<std::size_t>(n_rows));
        // A branch sees the rows before `first_row` and its own, but not the committed rows after
        // them.
        const ForwardResult lower = target.run({
            .tokens = tokens,
            .first_row = target_cache.committed(),
            .layout = {.kind = AttentionLayout::Kind::branches,
                       .context = first_row,
                       .branch_rows = n_rows},
            .exit_layer = exit_layer(),
            .captures = std::span(&capture, 1),
        });
        if (!lower.is_complete ||
            !forward_.run({.hidden = lower.captures.front(), .first_row = first_row}).is_complete) {
            return false;
        }
        cache_.commit(first_row + n_rows);
        tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    }
    return true;
}

std::span<const float> AdapterHead::logits(std::span<const float> hidden, int first_row) {
    KNAP_ASSERT(first_row == draft_end_, "rows of a draft are consecutive");
    const auto n_embd = static_cast<std::size_t>(adapter_.config().n_embd);
    const int n_waiting = static_cast<int>(waiting_.size() / n_embd);
    const int n_rows = static_cast<int>(hidden.size() / n_embd);
    hidden_ = waiting_;
    hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
    logit_rows_.resize(static_cast<std::size_t>(n_rows));
    std::iota(logit_rows_.begin(), logit_rows_.end(), n_waiting);
    const ForwardResult result = forward_.run({
        .hidden = hidden_,
        .first_row = first_row - n_waiting,
        .logit_rows = logit_rows_,
    });
    if (!result.is_complete) {
        return {};
    }
    if (n_waiting > 0) {
        cache_.commit(first_row);
        waiting_.clear();
    }
    draft_end_ = first_row + n_rows;
    return result.logits;
}

void AdapterHead::accept(std::span<const Token> tokens, std::span<const float> streams) {
    const auto n_embd = static_cast<std::size_t>(adapter_.config().n_embd);
    const std::size_t n_drafted = static_cast<std::size_t>(draft_end_) - tokens_.size();
    const std::size_t n_computed = std::min(n_drafted, tokens.size());
    if (n_computed > 0) {
        cache_.commit(static_cast<int>(tokens_.size() + n_computed));
    }
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    const auto rest = streams.subspan(n_computed * n_embd, (tokens.size() - n_computed) * n_embd);
    waiting_.insert(waiting_.end(), rest.begin(), rest.end());
}

}  // namespace knap
