// A copy of a chunk of a KV head's cached rows, laid out as in the cache, in which single rows are
// replaced by other rows: the rows that a row of a tree attends to, as if they were contiguous.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "graph/cache/ggml_kv_store.h"
#include "kernels/attention/attention.h"

namespace knap {

// Rows in the form that the kernel for their cache type takes.
using ChunkRows = std::variant<HalfRows, Int8Rows>;

class ChunkCopy {
  public:
    // Starts an empty copy of the stored rows from `first_row` on, a multiple of kAttentionChunk,
    // and keeps the memory of earlier copies. `cached` must have a tiled layout.
    void begin(const KvTensors& cached, int kv_head, int first_row);
    // Extends the copy to at least `n_rows` rows, a multiple of kAttentionStep, with rows of the
    // cache.
    void extend(int n_rows);
    // Replaces row `row` of the copy by a stored row; cheap if it already is that row.
    void place(int row, int stored_row);

    ChunkRows rows() const;

  private:
    struct alignas(64) Line {
        std::array<std::byte, 64> bytes;
    };
    // The copy of one of the cache's tensors. Units of `tile` rows lie together; a row of a tile of
    // one is a single unit.
    struct Part {
        const ggml_tensor* cached = nullptr;  // null: this cache has no such tensor
        int tile = 1;
        std::size_t unit_bytes = 0;
        std::vector<Line> lines{};

        void set(const ggml_tensor* tensor, int rows_per_tile, std::size_t bytes_per_unit);
        std::size_t row_bytes() const { return cached->nb[1]; }
        std::byte* data() { return lines.data()->bytes.data(); }
        template <typename Number>
        const Number* numbers() const {
            return reinterpret_cast<const Number*>(lines.data());
        }
    };
    template <typename Visit>
    void for_each_part(Visit visit);
    void copy_row(Part& part, int row, int stored_row) const;

    Part keys_;
    Part values_;
    Part key_scales_;
    Part value_scales_;
    int kv_head_ = 0;
    int first_row_ = 0;
    int n_rows_ = 0;
    std::array<std::int32_t, kAttentionChunk> stored_rows_{};  // of the copy's rows
};

}  // namespace knap
