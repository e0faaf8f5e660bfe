// Keys and values of the layers that one device computes. A store has rows for every page of the
// pool; which sequence a page belongs to is not its concern. Rows are numbered through all pages:
// row r of page p is row p * page_rows + r. How a row is laid out is the device's own affair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace knap {

// Layers [begin, end) of a model.
struct LayerRange {
    int begin = 0;
    int end = 0;

    int n_layers() const { return end - begin; }
    bool has(int layer) const { return layer >= begin && layer < end; }
};

// Rows [first, first + n_rows) of a store.
struct StoredRows {
    int first = 0;
    int n_rows = 0;
};

class KvStore {
  public:
    virtual ~KvStore() = default;

    virtual LayerRange layers() const = 0;
    virtual std::size_t bytes() const = 0;  // reserved

    // Copies `n_rows` rows from row `from` on over those from row `to` on, in every layer. They
    // must not overlap.
    virtual void copy_rows(int from, int to, int n_rows) = 0;
    // Whether copies may run beside a pass that does not touch the rows.
    virtual bool copies_beside_passes() const = 0;

    // --- for saving: rows of a layer, range by range, head by head, keys then values, the same for
    // every layout ---
    virtual std::size_t saved_row_bytes() const = 0;  // of one layer: keys and values
    virtual std::uint64_t saved_format() const = 0;   // identifies what the bytes mean
    virtual void export_rows(int layer, std::span<const StoredRows> rows, std::byte* out) const = 0;
    virtual void import_rows(int layer, std::span<const StoredRows> rows, const std::byte* in) = 0;
};

}  // namespace knap
