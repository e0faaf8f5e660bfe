#include "kv/kv_memory.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

KvMemory::KvMemory(std::vector<std::unique_ptr<KvStore>> stores, const PageShape& shape)
    : stores_(std::move(stores)),
      page_rows_(shape.page_rows),
      pool_(shape.n_pages),
      index_(pool_, shape.page_rows) {
    for (const auto& store : stores_) {
        KNAP_ASSERT(store->saved_row_bytes() == saved_row_bytes(), "the same rows in every layer");
    }
}

KvStore& KvMemory::of_layer(int layer) const {
    const auto store = std::ranges::find_if(
        stores_, [layer](const auto& candidate) { return candidate->layers().has(layer); });
    KNAP_ASSERT(store != stores_.end(), "a layer of the model");
    return **store;
}

std::size_t KvMemory::bytes() const {
    std::size_t n_bytes = 0;
    for (const auto& store : stores_) {
        n_bytes += store->bytes();
    }
    return n_bytes;
}

void KvMemory::copy_rows(int from, int to, int n_rows) {
    for (const auto& store : stores_) {
        store->copy_rows(from, to, n_rows);
    }
}

bool KvMemory::copies_beside_passes() const {
    return std::ranges::all_of(stores_,
                               [](const auto& store) { return store->copies_beside_passes(); });
}

}  // namespace knap
