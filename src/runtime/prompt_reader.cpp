#include "runtime/prompt_reader.h"

#include <algorithm>

#include "decode/advance.h"

namespace knap {

// What the prefix cache has of `tokens`, once older requests have computed what they share with it.
// False: cancelled.
bool PromptReader::adopt(std::span<const Token> tokens) {
    if (!adopts_rows_) {
        return true;
    }
    PageSupply& supply = session_.engine.pages();
    if (!supply.wait_for_shared_rows(session_.pages, is_cancelled_)) {
        return false;
    }
    // The last row is computed in any case, because its logits are wanted.
    n_adopted_ += supply.adopt(session_.pages, tokens.first(tokens.size() - 1));
    return true;
}

std::optional<std::span<const float>> PromptReader::read(
    std::span<const Token> tokens, const std::function<void(int n_rows)>& on_progress) {
    PageSupply& supply = session_.engine.pages();
    Sequence& cache = session_.cache;
    const auto n_tokens = static_cast<int>(tokens.size());
    ForwardResult result;
    supply.set_prompt(session_.pages, tokens);
    if (!adopt(tokens)) {
        return std::nullopt;
    }
    if (on_progress) {
        on_progress(cache.committed());
    }
    while (cache.committed() < n_tokens) {
        const int first_row = cache.committed();
        const int end_row = std::min(first_row + session_.forward.max_rows(first_row), n_tokens);
        const auto grant = supply.reserve(session_.pages, end_row, end_row, is_cancelled_);
        if (grant == PageSupply::Grant::cancelled) {
            return std::nullopt;
        }
        if (grant == PageSupply::Grant::lost) {
            if (!adopt(tokens)) {
                return std::nullopt;
            }
            continue;
        }
        result = advance_once(session_.forward, cache, tokens);
        if (!result.is_complete) {
            return std::nullopt;
        }
        publish(tokens, first_row);
        if (on_progress) {
            on_progress(cache.committed());
        }
    }
    supply.set_prompt(session_.pages, {});
    return result.logits;
}

// Lists the rows from `first_row` on, once a page is full or the text is at its end.
void PromptReader::publish(std::span<const Token> tokens, int first_row) {
    const Sequence& cache = session_.cache;
    const int page_rows = cache.memory().page_rows();
    const auto n_rows = static_cast<std::size_t>(cache.committed());
    const bool is_end = n_rows == tokens.size();
    if (session_.shares_prefixes &&
        (is_end || first_row / page_rows < cache.committed() / page_rows)) {
        session_.engine.pages().publish(session_.pages, tokens.first(n_rows), is_end);
    }
}

bool PromptReader::prepare_round() {
    Sequence& cache = session_.cache;
    for (;;) {
        const int n_rows = std::min(cache.capacity(), cache.committed() + kScratchRows);
        // Searches use more scratch rows where pages are plenty.
        const int n_wished =
            std::min(cache.capacity(),
                     cache.committed() + std::max(kScratchRows, session_.engine.config.n_ubatch));
        switch (session_.engine.pages().reserve(session_.pages, n_rows, n_wished, is_cancelled_)) {
            case PageSupply::Grant::ready:
                return true;
            case PageSupply::Grant::cancelled:
                return false;
            case PageSupply::Grant::lost:
                break;
        }
        const std::span<const Token> text(session_.history);
        if (text.size() > 1 && !read(text.first(text.size() - 1))) {
            return false;
        }
    }
}

}  // namespace knap
