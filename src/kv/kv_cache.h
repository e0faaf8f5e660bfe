// Keys and values of every layer for one sequence of rows. Rows below committed() are final; rows
// above it are scratch that the next pass may overwrite. Rejecting work is truncate(n): nothing is
// copied or cleared. The rows lie in stores (kv_store.h), one for each device that computes layers.
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
    // `options` are those of each share; they differ in their layouts alone.
    KvCache(const ModelConfig& config,
            const LayerMap& layers,
            std::span<const KvCacheOptions> options);

    int capacity() const { return options().capacity; }
    int committed() const { return committed_; }
    void commit(int n_rows);    // rows [0, n_rows) are final; never below committed()
    void truncate(int n_rows);  // rows from n_rows on are scratch again
    // Copies row `from` over row `to` in every layer; `to` is scratch.
    void copy_row(int from, int to);
    // Of the first layers; the layout may be another in later ones.
    const KvCacheOptions& options() const { return stores_.front()->options(); }

    std::size_t bytes() const;  // reserved

    // In the order of the layers.
    std::span<const std::unique_ptr<KvStore>> stores() const { return stores_; }
    const KvStore& of_layer(int layer) const;

    // --- for saving: the first rows of a layer, head by head, keys then values, whatever the
    // layout ---
    std::size_t saved_row_bytes() const;  // of one layer: a row of keys and one of values
    void read_rows(int layer, int n_rows, std::byte* out) const;
    void write_rows(int layer, int n_rows, const std::byte* in);

  private:
    KvStore& store(int layer) const;

    std::vector<std::unique_ptr<KvStore>> stores_;
    int committed_ = 0;
};

}  // namespace knap
