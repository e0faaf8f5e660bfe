#include "kv/sequence.h"

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "base/rounding.h"

namespace knap {

Sequence::Sequence(KvMemory& memory, int capacity) : memory_(memory), capacity_(capacity) {
    pages_.reserve(pages_for(capacity));
}

Sequence::~Sequence() {
    release();
}

void Sequence::commit(int n_rows) {
    KNAP_ASSERT(n_rows >= committed_ && n_rows <= capacity_,
                "committing moves forward, within the cache");
    committed_ = n_rows;
}

void Sequence::truncate(int n_rows) {
    KNAP_ASSERT(n_rows >= 0 && n_rows <= committed_, "truncating moves backward");
    may_share_ = may_share_ || n_rows < committed_;
    committed_ = n_rows;
}

void Sequence::copy_row(int from, int to) {
    KNAP_ASSERT(to >= committed_ && to < capacity_ && from >= 0 && from < capacity_,
                "only scratch rows are overwritten");
    memory_.copy_rows(stored_row(from), stored_row(to), 1);
}

bool Sequence::reserve(int n_rows) {
    KNAP_ASSERT(n_rows <= capacity_, "rows fit the cache");
    if (is_reserved(n_rows)) {
        return true;
    }
    const std::lock_guard lock(memory_.mutex());
    if (may_share_ && !own_pages()) {
        return false;
    }
    const std::size_t n_before = pages_.size();
    while (n_reserved() < n_rows) {
        const auto page = take_page();
        if (!page) {
            while (pages_.size() > n_before) {
                memory_.pool().release(pages_.back());
                pages_.pop_back();
            }
            return false;
        }
        pages_.push_back(*page);
    }
    may_share_ = false;
    return true;
}

void Sequence::reserve_if_free(int n_rows) {
    const std::lock_guard lock(memory_.mutex());
    while (n_reserved() < std::min(n_rows, capacity_)) {
        const auto page = memory_.pool().take();
        if (!page) {
            return;
        }
        pages_.push_back(*page);
    }
}

// Whether somebody else reads rows of a page from row `n_rows` on: another sequence may read any.
bool Sequence::is_counted_on(PageId page, int n_rows) const {
    const int n_promised = memory_.index().n_promised(page);
    const int n_users = memory_.pool().users(page) - (n_promised > 0 ? 1 : 0);
    return n_users > 1 || n_promised > n_rows;
}

// Makes sure that nobody else counts on the rows above the committed ones. The page with the last
// committed row is copied if need be; shared pages without one are given back.
bool Sequence::own_pages() {
    const int page_rows = memory_.page_rows();
    const auto first = static_cast<std::size_t>(committed_ / page_rows);
    const int n_kept = committed_ % page_rows;
    if (n_kept > 0 && is_counted_on(pages_[first], n_kept) && !own_page(first, n_kept)) {
        return false;
    }
    const auto shared = std::find_if(
        pages_.begin() +
            static_cast<std::ptrdiff_t>(std::min(pages_.size(), first + (n_kept > 0 ? 1 : 0))),
        pages_.end(), [this](PageId page) { return is_counted_on(page, 0); });
    std::for_each(shared, pages_.end(), [this](PageId page) { memory_.pool().release(page); });
    pages_.erase(shared, pages_.end());
    return true;
}

// Replaces a shared page by one of our own with a copy of its first `n_kept` rows.
bool Sequence::own_page(std::size_t index, int n_kept) {
    const PageId shared = pages_[index];
    const auto own = take_page();
    if (!own) {
        // Nobody reads the page but through the prefix cache, which can do without it.
        if (memory_.pool().users(shared) == 2 && memory_.index().n_promised(shared) > 0) {
            memory_.index().forget(shared);
            return true;
        }
        return false;
    }
    const int page_rows = memory_.page_rows();
    if (n_kept > 0) {
        memory_.copy_rows(shared * page_rows, *own * page_rows, n_kept);
    }
    memory_.pool().release(shared);
    pages_[index] = *own;
    return true;
}

std::optional<PageId> Sequence::take_page() {
    auto page = memory_.pool().take();
    while (!page && memory_.index().evict_one()) {
        page = memory_.pool().take();
    }
    return page;
}

void Sequence::return_scratch() {
    const std::size_t n_kept = pages_for(committed_);
    const std::lock_guard lock(memory_.mutex());
    while (pages_.size() > n_kept) {
        memory_.pool().release(pages_.back());
        pages_.pop_back();
    }
}

void Sequence::release() {
    committed_ = 0;
    return_scratch();
}

void Sequence::fork_from(const Sequence& other) {
    KNAP_ASSERT(pages_.empty() && &memory_ == &other.memory_ && other.committed_ <= capacity_,
                "an empty sequence of the same memory");
    const std::lock_guard lock(memory_.mutex());
    for (const PageId page : other.pages().first(pages_for(other.committed_))) {
        memory_.pool().share(page);
        pages_.push_back(page);
    }
    committed_ = other.committed_;
    may_share_ = true;
}

int Sequence::adopt_prefix(std::span<const Token> tokens) {
    KNAP_ASSERT(committed_ <= static_cast<int>(tokens.size()) &&
                    static_cast<int>(tokens.size()) <= capacity_,
                "a text that fits and goes on where the rows end");
    const int n_before = committed_;
    PrefixIndex::Match match;
    {
        const std::lock_guard lock(memory_.mutex());
        match = memory_.index().find(tokens);
    }
    const int n_found =
        static_cast<int>(match.pages.size()) * memory_.page_rows() + match.n_partial;
    if (match.partial >= 0) {
        match.pages.push_back(match.partial);
    }
    if (n_found > n_before) {
        release();
        pages_.assign(match.pages.begin(), match.pages.end());  // there is room for all
        match.pages.clear();
        committed_ = n_found;
        may_share_ = true;
    }
    const std::lock_guard lock(memory_.mutex());
    for (const PageId page : match.pages) {
        memory_.pool().release(page);
    }
    return committed_ - n_before;
}

int Sequence::publish_prefix(std::span<const Token> tokens, bool with_last) {
    KNAP_ASSERT(static_cast<int>(tokens.size()) == committed_, "the tokens of the committed rows");
    const int n_rows = with_last ? committed_ : round_down(committed_, memory_.page_rows());
    const std::lock_guard lock(memory_.mutex());
    memory_.index().insert(tokens.first(static_cast<std::size_t>(n_rows)),
                           std::span(pages_).first(pages_for(n_rows)));
    use_listed_pages(
        tokens.first(static_cast<std::size_t>(round_down(committed_, memory_.page_rows()))));
    return n_rows;
}

// Somebody else may have listed the same rows before. Who uses a listed page must also use those
// before it: they stay listed as long as it does, and nobody could have them back.
void Sequence::use_listed_pages(std::span<const Token> tokens) {
    PrefixIndex::Match listed = memory_.index().find(tokens);
    KNAP_ASSERT(pages_for(static_cast<int>(tokens.size())) == listed.pages.size(),
                "all whole pages are listed");
    std::ranges::swap_ranges(listed.pages, std::span(pages_).first(listed.pages.size()));
    std::ranges::for_each(listed.pages, [this](PageId page) { memory_.pool().release(page); });
}

std::size_t Sequence::pages_for(int n_rows) const {
    return static_cast<std::size_t>(steps_for(n_rows, memory_.page_rows()));
}

std::vector<StoredRows> Sequence::stored_rows(int n_rows) const {
    std::vector<StoredRows> rows;
    for (int row = 0; row < n_rows; row += kSavedRows) {
        rows.push_back({stored_row(row), std::min(kSavedRows, n_rows - row)});
    }
    return rows;
}

void Sequence::read_rows(int layer, int n_rows, std::byte* out) const {
    memory_.of_layer(layer).export_rows(layer, stored_rows(n_rows), out);
}

void Sequence::write_rows(int layer, int n_rows, const std::byte* in) {
    KNAP_ASSERT(n_rows <= n_reserved(), "rows that are reserved");
    memory_.of_layer(layer).import_rows(layer, stored_rows(n_rows), in);
}

}  // namespace knap
