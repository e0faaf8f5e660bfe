// Keys and values of every layer for one sequence of rows. Rows below committed() are final; rows
// above are scratch, which the next pass may overwrite. truncate(n) rolls back and copies or clears
// nothing. The rows are in stores (kv_store.h), one per device that computes layers.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kv/kv_store.h"

namespace knap {

class KvCache {
  public:
    // Throws knap::Error when the types do not fit the model or memory is short. The devices must
    // outlive the cache.
    KvCache(const ModelConfig& config, Backend& backend, const KvCacheOptions& options);
    // One element of `options` per share; they may differ only in layout.
    KvCache(const ModelConfig& config,
            const LayerMap& layers,
            std::span<const KvCacheOptions> options);

    int capacity() const { return options().capacity; }
    int committed() const { return committed_; }
    void commit(int n_rows);    // rows [0, n_rows) are final; never below committed()
    void truncate(int n_rows);  // rows from n_rows on are scratch again
    // Copies row `from` over row `to`, which must be scratch, in every layer.
    void copy_row(int from, int to);
    // Those of the first layers; later layers may have another layout.
    const KvCacheOptions& options() const { return stores_.front()->options(); }

    std::size_t bytes() const;  // reserved

    // In layer order.
    std::span<const std::unique_ptr<KvStore>> stores() const { return stores_; }
    const KvStore& of_layer(int layer) const;

    // --- for saving: the first rows of a layer, head by head, keys then values, for any layout ---
    std::size_t saved_row_bytes() const;  // of one layer: a row of keys and one of values
    void read_rows(int layer, int n_rows, std::byte* out) const;
    void write_rows(int layer, int n_rows, const std::byte* in);

  private:
    KvStore& store(int layer) const;

    std::vector<std::unique_ptr<KvStore>> stores_;
    int committed_ = 0;
};

}  // namespace knap
