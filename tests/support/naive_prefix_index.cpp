#include "support/naive_prefix_index.h"

#include <algorithm>

namespace knap::test {

std::size_t count_common(std::span<const Token> a, std::span<const Token> b) {
    std::size_t n_common = 0;
    while (n_common < a.size() && n_common < b.size() && a[n_common] == b[n_common]) {
        ++n_common;
    }
    return n_common;
}

bool begins_with(std::span<const Token> text, std::span<const Token> beginning) {
    return count_common(text, beginning) == beginning.size();
}

TokenText NaivePrefixIndex::up_to_page(const TokenText& text, std::size_t i) const {
    const std::size_t n_tokens = std::min(text.size(), (i + 1) * page_rows_);
    return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_tokens)};
}

NaivePrefixIndex::Listed* NaivePrefixIndex::closest(const TokenText& text,
                                                    std::size_t first,
                                                    std::size_t& n_common) {
    Listed* best = nullptr;
    n_common = first;
    for (auto& [candidate, listed] : listed_) {
        const std::size_t n = count_common(candidate, text);
        if (first_row(candidate) != first || n <= first) {
            continue;
        }
        if (n > n_common || (n == n_common && listed.since < best->since)) {
            best = &listed;
            n_common = n;
        }
    }
    return best;
}

void NaivePrefixIndex::insert(const TokenText& text, std::span<const PageId> pages) {
    ++now_;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const TokenText end = up_to_page(text, i);
        const std::size_t first = first_row(end);
        std::size_t n_common = 0;
        Listed* const holder = closest(end, first, n_common);
        if (holder != nullptr && n_common == end.size()) {
            holder->last_use = now_;
            continue;
        }
        std::erase_if(listed_, [&](const auto& entry) {
            return first_row(entry.first) == first && begins_with(end, entry.first);
        });
        listed_[end] = {.page = pages[i], .since = now_, .last_use = now_};
    }
}

PrefixIndex::Match NaivePrefixIndex::find(const TokenText& text) {
    ++now_;
    PrefixIndex::Match match;
    for (std::size_t i = 0; (i + 1) * page_rows_ <= text.size(); ++i) {
        const auto found = listed_.find(up_to_page(text, i));
        if (found == listed_.end()) {
            break;
        }
        found->second.last_use = now_;
        match.pages.push_back(found->second.page);
    }
    const std::size_t first = match.pages.size() * page_rows_;
    std::size_t n_common = 0;
    if (Listed* const partial = closest(text, first, n_common)) {
        partial->last_use = now_;
        match.partial = partial->page;
        match.n_partial = static_cast<int>(n_common - first);
    }
    return match;
}

void NaivePrefixIndex::forget(PageId page) {
    if (const TokenText* const found = text_of(page)) {
        std::erase_if(
            listed_, [text = *found](const auto& entry) { return begins_with(entry.first, text); });
    }
}

std::optional<PageId> NaivePrefixIndex::next_evicted(const IsUsed& is_used) const {
    const Listed* oldest = nullptr;
    for (const auto& [text, listed] : listed_) {
        const bool is_followed = std::ranges::count_if(listed_, [&text = text](const auto& entry) {
                                     return begins_with(entry.first, text);
                                 }) > 1;
        if (!is_followed && !is_used(listed.page) &&
            (oldest == nullptr || listed.last_use < oldest->last_use)) {
            oldest = &listed;
        }
    }
    return oldest == nullptr ? std::nullopt : std::optional(oldest->page);
}

int NaivePrefixIndex::n_evictable(const IsUsed& is_used) const {
    return static_cast<int>(std::ranges::count_if(listed_, [&](const auto& kept) {
        return std::ranges::none_of(listed_, [&](const auto& entry) {
            return begins_with(entry.first, kept.first) && is_used(entry.second.page);
        });
    }));
}

const TokenText* NaivePrefixIndex::text_of(PageId page) const {
    const auto found = std::ranges::find_if(
        listed_, [page](const auto& entry) { return entry.second.page == page; });
    return found == listed_.end() ? nullptr : &found->first;
}

}  // namespace knap::test
