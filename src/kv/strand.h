// How rows lie in a tensor of the cache, head after head. A head's part of a row is a number of
// units; the units of the same number lie together for `tile` rows at a time:
// [unit_bytes, tile, n_units, capacity / tile, n_kv_heads]. Rows that lie whole are one unit each
// and tiles of one; transposed rows are a unit per channel and one tile of all rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace knap {

struct Strand {
    ggml_tensor* tensor;
    std::int64_t capacity;  // rows, a multiple of tile
    std::int64_t unit_bytes;
    std::int64_t n_units;
    std::int64_t tile;

    // Where a unit lies, counted in units.
    std::int64_t index(std::int64_t head, std::int64_t row, std::int64_t unit) const {
        const std::int64_t in_tile = row % tile;
        return head * capacity * n_units + (row - in_tile) * n_units + unit * tile + in_tile;
    }
    std::byte* data(std::int64_t head, std::int64_t row, std::int64_t unit) const {
        return static_cast<std::byte*>(tensor->data) + index(head, row, unit) * unit_bytes;
    }
};

}  // namespace knap
