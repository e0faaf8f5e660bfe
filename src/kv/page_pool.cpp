#include "kv/page_pool.h"

#include <numeric>

#include "base/error.h"

namespace knap {

PagePool::PagePool(int n_pages) {
    KNAP_ASSERT(n_pages >= 0, "a number of pages");
    users_.resize(static_cast<std::size_t>(n_pages));
    free_.resize(users_.size());
    std::iota(free_.rbegin(), free_.rend(), 0);
}

std::optional<PageId> PagePool::take() {
    if (free_.empty()) {
        return std::nullopt;
    }
    const PageId page = free_.back();
    free_.pop_back();
    users_[static_cast<std::size_t>(page)] = 1;
    return page;
}

void PagePool::share(PageId page) {
    ++users_in_use(page);
}

void PagePool::release(PageId page) {
    if (--users_in_use(page) == 0) {
        free_.push_back(page);  // does not allocate: there was room for every page
    }
}

int PagePool::users(PageId page) const {
    KNAP_ASSERT(page >= 0 && page < n_pages(), "a page of the pool");
    return users_[static_cast<std::size_t>(page)];
}

int& PagePool::users_in_use(PageId page) {
    KNAP_ASSERT(users(page) > 0, "a page that is in use");
    return users_[static_cast<std::size_t>(page)];
}

}  // namespace knap
