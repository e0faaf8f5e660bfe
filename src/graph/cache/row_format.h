// The layout of rows in a tensor of the cache. A head's part of a row consists of units. Units of
// the same index are stored together for `tile` rows at a time, and all units of a head for `block`
// rows: [unit_bytes, tile, n_units, block / tile, n_kv_heads, n_rows / block]. Contiguous rows
// have one unit and tiles of one row; transposed rows have a unit per channel and one tile of all
// rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace knap {

struct RowFormat {
    ggml_tensor* tensor;  // its third dimension is the head, its fourth the block
    std::int64_t unit_bytes;
    std::int64_t n_units;
    std::int64_t tile;
    std::int64_t block;  // a multiple of tile

    // The position of a unit, in units.
    std::int64_t index(std::int64_t head, std::int64_t row, std::int64_t unit) const {
        return offset(head, row, unit) / unit_bytes;
    }
    // The same in bytes.
    std::int64_t offset(std::int64_t head, std::int64_t row, std::int64_t unit) const {
        const std::int64_t in_block = row % block;
        const std::int64_t in_tile = in_block % tile;
        const std::int64_t n_before = (in_block - in_tile) * n_units + unit * tile + in_tile;
        return row / block * static_cast<std::int64_t>(tensor->nb[3]) +
               head * static_cast<std::int64_t>(tensor->nb[2]) + n_before * unit_bytes;
    }
};

}  // namespace knap
