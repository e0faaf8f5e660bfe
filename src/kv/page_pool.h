// Which pages of the KV cache are in use, and by how many users. A page is a fixed number of cache
// rows and is known by its number; the rows themselves are elsewhere. Not thread-safe: the owner
// locks.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace knap {

using PageId = std::int32_t;

class PagePool {
  public:
    // Pages 0 to n_pages - 1, all free.
    explicit PagePool(int n_pages);

    int n_pages() const { return static_cast<int>(users_.size()); }
    int n_free() const { return static_cast<int>(free_.size()); }

    // A free page, which now has one user; nullopt: none is free. The page freed last comes first,
    // because its memory is mapped and may still be in the processor's caches. Pages that were
    // never used follow in ascending order.
    std::optional<PageId> take();
    void share(PageId page);    // one user more; the page must be in use
    void release(PageId page);  // one user fewer; with none left the page is free
    int users(PageId page) const;

  private:
    int& users_in_use(PageId page);

    std::vector<int> users_;    // by page; 0: free
    std::vector<PageId> free_;  // the next one to take is last
};

}  // namespace knap
