#include "graph/attention/chunk_copy.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"

namespace knap {
namespace {

// Copies `n_units` units that are `stride` bytes apart, from a row of a tile to one of another.
template <typename Unit>
void copy_units(const std::byte* from, std::byte* to, std::size_t n_units, std::size_t stride) {
    for (std::size_t i = 0; i < n_units; ++i) {
        std::memcpy(to + i * stride, from + i * stride, sizeof(Unit));
    }
}

}  // namespace

void ChunkCopy::begin(const KvTensors& cached, int kv_head, int first_row) {
    kv_head_ = kv_head;
    first_row_ = first_row;
    n_rows_ = 0;
    std::iota(stored_rows_.begin(), stored_rows_.end(), first_row);
    const bool is_int8 = cached.key_scales != nullptr;
    keys_.set(cached.keys, kKeyTile, is_int8 ? sizeof(std::uint32_t) : sizeof(std::uint16_t));
    if (is_int8) {
        values_.set(cached.values, kValueTile, sizeof(std::int8_t));
    } else {
        values_.set(cached.values, 1, cached.values->nb[1]);
    }
    key_scales_.set(cached.key_scales, 1, sizeof(std::uint16_t));
    value_scales_.set(cached.value_scales, 1, sizeof(std::uint16_t));
}

void ChunkCopy::Part::set(const ggml_tensor* tensor,
                          int rows_per_tile,
                          std::size_t bytes_per_unit) {
    cached = tensor;
    tile = rows_per_tile;
    unit_bytes = bytes_per_unit;
    if (cached != nullptr) {
        const std::size_t n_lines = (kAttentionChunk * row_bytes() - 1) / sizeof(Line) + 1;
        lines.resize(std::max(lines.size(), n_lines));
    }
}

// Of the parts that this cache has.
template <typename Visit>
void ChunkCopy::for_each_part(Visit visit) {
    for (Part* part : {&keys_, &values_, &key_scales_, &value_scales_}) {
        if (part->cached != nullptr) {
            visit(*part);
        }
    }
}

void ChunkCopy::extend(int n_rows) {
    KNAP_ASSERT(n_rows % kAttentionStep == 0 && n_rows <= kAttentionChunk, "whole steps");
    if (n_rows <= n_rows_) {
        return;
    }
    for_each_part([&](Part& part) {
        std::memcpy(part.data() + static_cast<std::size_t>(n_rows_) * part.row_bytes(),
                    cached_row<std::byte>(part.cached, kv_head_, first_row_ + n_rows_),
                    static_cast<std::size_t>(n_rows - n_rows_) * part.row_bytes());
    });
    n_rows_ = n_rows;
}

void ChunkCopy::place(int row, int stored_row) {
    KNAP_ASSERT(row < n_rows_, "rows that are there are replaced");
    std::int32_t& present = stored_rows_[static_cast<std::size_t>(row)];
    if (present == stored_row) {
        return;
    }
    present = stored_row;
    for_each_part([&](Part& part) { copy_row(part, row, stored_row); });
}

void ChunkCopy::copy_row(Part& part, int row, int stored_row) const {
    const int lane = stored_row % part.tile;
    const int own_lane = row % part.tile;
    const std::byte* from = cached_row<std::byte>(part.cached, kv_head_, stored_row - lane) +
                            static_cast<std::size_t>(lane) * part.unit_bytes;
    std::byte* to = part.data() + static_cast<std::size_t>(row - own_lane) * part.row_bytes() +
                    static_cast<std::size_t>(own_lane) * part.unit_bytes;
    if (part.tile == 1) {
        std::memcpy(to, from, part.row_bytes());
        return;
    }
    const std::size_t n_units = part.row_bytes() / part.unit_bytes;
    const std::size_t stride = static_cast<std::size_t>(part.tile) * part.unit_bytes;
    switch (part.unit_bytes) {
        case sizeof(std::uint8_t):
            return copy_units<std::uint8_t>(from, to, n_units, stride);
        case sizeof(std::uint16_t):
            return copy_units<std::uint16_t>(from, to, n_units, stride);
        default:
            return copy_units<std::uint32_t>(from, to, n_units, stride);
    }
}

ChunkRows ChunkCopy::rows() const {
    if (key_scales_.cached == nullptr) {
        return HalfRows{.keys = keys_.numbers<std::uint16_t>(),
                        .values = values_.numbers<std::uint16_t>()};
    }
    return Int8Rows{.keys = keys_.numbers<std::uint8_t>(),
                    .key_scales = key_scales_.numbers<std::uint16_t>(),
                    .values = values_.numbers<std::int8_t>(),
                    .value_scales = value_scales_.numbers<std::uint16_t>()};
}

}  // namespace knap
