// The memory for keys and values of one model: the stores of its devices, and the pages that
// sequences take from them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kv/kv_store.h"
#include "kv/page_pool.h"
#include "kv/prefix_index.h"

namespace knap {

struct PageShape {
    int page_rows = 0;
    int n_pages = 0;
};

class KvMemory {
  public:
    // Stores in the order of their layers, each with rows for all pages.
    KvMemory(std::vector<std::unique_ptr<KvStore>> stores, const PageShape& shape);

    int page_rows() const { return page_rows_; }
    std::span<const std::unique_ptr<KvStore>> stores() const { return stores_; }
    KvStore& of_layer(int layer) const;
    std::size_t bytes() const;  // reserved
    std::size_t saved_row_bytes() const { return stores_.front()->saved_row_bytes(); }
    // In every layer.
    void copy_rows(int from, int to, int n_rows);
    bool copies_beside_passes() const;

    // Sequences of several threads take and return pages: hold the mutex while using the pool or
    // the index.
    std::mutex& mutex() { return mutex_; }
    PagePool& pool() { return pool_; }
    PrefixIndex& index() { return index_; }

  private:
    std::vector<std::unique_ptr<KvStore>> stores_;
    int page_rows_;
    std::mutex mutex_;
    PagePool pool_;
    PrefixIndex index_;
};

}  // namespace knap
