#include "kv/prefix_index.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/rounding.h"

namespace knap {

std::uint64_t chained_hash(std::uint64_t before, std::span<const Token> tokens) {
    Fnv1a key;
    key.add(before);
    key.add(std::as_bytes(tokens));
    return key.value();
}

PrefixIndex::PrefixIndex(PagePool& pool, int page_rows, PageHash hash)
    : pool_(pool),
      page_rows_(static_cast<std::size_t>(page_rows)),
      hash_(hash),
      root_(pool.n_pages()),
      entries_(static_cast<std::size_t>(pool.n_pages()) + 1) {
    KNAP_ASSERT(page_rows > 0, "a page has rows");
}

PrefixIndex::~PrefixIndex() {
    clear();
}

void PrefixIndex::insert(std::span<const Token> tokens, std::span<const PageId> pages) {
    KNAP_ASSERT(pages.size() == steps_for(tokens.size(), page_rows_),
                "as many pages as the tokens fill");
    ++now_;
    PageId before = root_;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        before = list(before, piece(tokens, i), pages[i]);
        touch(before);
    }
}

PrefixIndex::Match PrefixIndex::find(std::span<const Token> tokens) {
    ++now_;
    Match match;
    match.pages.reserve(tokens.size() / page_rows_ + 1);  // before anything is shared
    PageId before = root_;
    const auto use = [this](PageId page) {
        pool_.share(page);
        touch(page);
    };
    for (std::size_t i = 0; i < tokens.size() / page_rows_; ++i) {
        const PageId page = find_whole(before, piece(tokens, i));
        if (page < 0) {
            break;
        }
        use(page);
        match.pages.push_back(page);
        before = page;
    }
    const Closest rest = find_closest(before, piece(tokens, match.pages.size()));
    if (rest.n_common > 0) {
        use(rest.page);
        match.partial = rest.page;
        match.n_partial = static_cast<int>(rest.n_common);
    }
    return match;
}

int PrefixIndex::n_promised(PageId page) const {
    KNAP_ASSERT(page >= 0 && page < root_, "a page of the pool");
    return static_cast<int>(entry(page).tokens.size());
}

void PrefixIndex::forget(PageId page) {
    if (n_promised(page) == 0) {
        return;
    }
    // From the ends of texts upwards, without recursion: a text may have thousands of pages.
    for (PageId at = page; n_promised(page) > 0;) {
        while (!entry(at).after.empty()) {
            at = entry(at).after.back();
        }
        const PageId before = entry(at).before;
        drop_leaf(at);
        at = before;
    }
}

bool PrefixIndex::evict_one() {
    const auto leaf = std::ranges::find_if(
        leaves_, [this](const LeafUse& candidate) { return pool_.users(candidate.second) == 1; });
    if (leaf == leaves_.end()) {
        return false;
    }
    drop_leaf(leaf->second);
    return true;
}

void PrefixIndex::clear() {
    while (!entry(root_).after.empty()) {
        forget(entry(root_).after.back());
    }
}

int PrefixIndex::n_evictable() const {
    // A page in use keeps all pages before it.
    std::vector<bool> is_kept(entries_.size());
    int n_kept = 0;
    for (PageId page = 0; page < root_; ++page) {
        if (n_promised(page) == 0 || pool_.users(page) == 1) {
            continue;
        }
        for (PageId at = page; at != root_ && !is_kept[static_cast<std::size_t>(at)];
             at = entry(at).before) {
            is_kept[static_cast<std::size_t>(at)] = true;
            ++n_kept;
        }
    }
    return n_listed_ - n_kept;
}

std::span<const Token> PrefixIndex::piece(std::span<const Token> tokens, std::size_t i) const {
    const std::span<const Token> rest = tokens.subspan(i * page_rows_);
    return rest.first(std::min(rest.size(), page_rows_));
}

PageId PrefixIndex::find_whole(PageId before, std::span<const Token> tokens) const {
    const auto [first, last] = whole_.equal_range(hash_(entry(before).key, tokens));
    for (auto found = first; found != last; ++found) {
        const Entry& candidate = entry(found->second);
        if (candidate.before == before && std::ranges::equal(candidate.tokens, tokens)) {
            return found->second;
        }
    }
    return -1;
}

PrefixIndex::Closest PrefixIndex::find_closest(PageId before, std::span<const Token> tokens) const {
    Closest closest;
    for (const PageId page : entry(before).after) {
        const auto common = std::ranges::mismatch(entry(page).tokens, tokens);
        const auto n_common = static_cast<std::size_t>(common.in2 - tokens.begin());
        if (n_common > closest.n_common) {
            closest = {page, n_common};
        }
    }
    return closest;
}

PageId PrefixIndex::list(PageId before, std::span<const Token> tokens, PageId page) {
    if (tokens.size() == page_rows_) {
        const PageId whole = find_whole(before, tokens);
        if (whole >= 0) {
            return whole;
        }
    }
    const Closest closest = find_closest(before, tokens);
    if (closest.n_common == tokens.size()) {
        return closest.page;
    }
    // At most one listed page holds a beginning of the tokens: of two, the shorter would hold a
    // beginning of the longer. No other page has more in common, for the same reason.
    if (closest.n_common > 0 && closest.n_common == entry(closest.page).tokens.size()) {
        drop_leaf(closest.page);
    }
    add(before, tokens, page);
    return page;
}

// All or nothing, should memory run out.
void PrefixIndex::add(PageId before, std::span<const Token> tokens, PageId page) {
    KNAP_ASSERT(n_promised(page) == 0, "a page is forgotten before its rows are overwritten");
    Entry& parent = entry(before);
    Entry added{.tokens = {tokens.begin(), tokens.end()}, .before = before};
    const auto leaf = leaves_.emplace(added.last_use, page).first;
    try {
        parent.after.push_back(page);
        if (tokens.size() == page_rows_) {
            added.key = hash_(parent.key, tokens);
            whole_.emplace(added.key, page);
        }
    } catch (...) {
        std::erase(parent.after, page);
        leaves_.erase(leaf);
        throw;
    }
    leaves_.erase({parent.last_use, before});
    entry(page) = std::move(added);
    pool_.share(page);
    ++n_listed_;
}

void PrefixIndex::drop_leaf(PageId page) {
    Entry& dropped = entry(page);
    if (is_whole(page)) {
        const auto [first, last] = whole_.equal_range(dropped.key);
        whole_.erase(std::find_if(first, last,
                                  [page](const auto& listed) { return listed.second == page; }));
    }
    auto leaf = leaves_.extract({dropped.last_use, page});
    Entry& parent = entry(dropped.before);
    parent.after.erase(std::ranges::find(parent.after, page));
    if (parent.after.empty() && dropped.before != root_) {
        leaf.value() = {parent.last_use, dropped.before};  // does not allocate
        leaves_.insert(std::move(leaf));
    }
    dropped = {};
    --n_listed_;
    pool_.release(page);
}

void PrefixIndex::touch(PageId page) {
    Entry& used = entry(page);
    if (auto leaf = leaves_.extract({used.last_use, page})) {
        leaf.value() = {now_, page};  // does not allocate
        leaves_.insert(std::move(leaf));
    }
    used.last_use = now_;
}

}  // namespace knap
