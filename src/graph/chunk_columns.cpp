#include "graph/chunk_columns.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>

#include "graph/attention_mask.h"
#include "graph/chunk_copy.h"
#include "kernels/attention/attention.h"

namespace knap {
namespace {

void clear_partials(const AttentionNode& in, std::span<float* const> partials) {
    for (float* partial : partials) {
        clear_partial(in.config.head_dim, partial);
    }
}

// Columns of one KV head that meet the same rows of the cache.
class Columns {
  public:
    std::size_t size() const { return n_; }
    void add(const float* query, const std::uint16_t* mask, float* partial) {
        queries_[n_] = query;
        masks_[n_] = mask;
        partials_[n_] = partial;
        ++n_;
    }
    void run(const ModelConfig& config, int n_positions, const ChunkRows& rows) const {
        const AttentionKernel& kernel = attention_kernels().front();
        const AttentionChunk chunk{.head_dim = config.head_dim,
                                   .n_columns = static_cast<int>(n_),
                                   .n_positions = n_positions,
                                   .scale = config.attention_scale,
                                   .queries = queries_.data(),
                                   .masks = masks_.data(),
                                   .partials = partials_.data()};
        if (const auto* int8_rows = std::get_if<Int8Rows>(&rows)) {
            kernel.run_int8_chunk(chunk, *int8_rows);
        } else {
            kernel.run_chunk(chunk, std::get<HalfRows>(rows));
        }
    }

  private:
    std::size_t n_ = 0;
    std::array<const float*, kMaxAttentionColumns> queries_;
    std::array<const std::uint16_t*, kMaxAttentionColumns> masks_;
    std::array<float*, kMaxAttentionColumns> partials_;
};

// The columns of a row whose path is scattered over the cache: what it sees of the stretch is put
// into one piece. `copy` is of this stretch.
void run_scattered_row(const AttentionNode& in,
                       int kv_head,
                       int first,
                       const Stretch& stretch,
                       std::span<float* const> partials,
                       ChunkCopy& copy) {
    const int row = in.row_of(first);
    const int n_seen = std::min(in.tree->n_seen(row) - stretch.row, stretch.count);
    const int n_positions = (n_seen + kAttentionStep - 1) / kAttentionStep * kAttentionStep;
    copy.extend(n_positions);
    in.tree->for_each(row, [&](int position, int cache_row) {
        const int at = position - stretch.row;
        if (0 <= at && at < n_seen) {
            copy.place(at, cache_row);
        }
    });
    std::array<std::uint16_t, kAttentionChunk> mask{};
    std::fill(mask.begin() + n_seen, mask.end(), kHiddenBits);
    Columns columns;
    for (int c = 0; c < static_cast<int>(partials.size()); ++c) {
        columns.add(in.query(kv_head, first + c), mask.data(),
                    partials[static_cast<std::size_t>(c)]);
    }
    columns.run(in.config, n_positions, copy.rows());
}

// The columns of run_chunk() whose rows do not lie in place, row by row.
void run_scattered_rows(const AttentionNode& in,
                        int kv_head,
                        int first,
                        const Stretch& stretch,
                        std::span<float* const> partials) {
    thread_local ChunkCopy copy;
    copy.begin(in.cached, kv_head, stretch.row);
    const int end = first + static_cast<int>(partials.size());
    for (int column = first, row_end = first; column < end; column = row_end) {
        const int row = in.row_of(column);
        row_end = std::min(end, (row + 1) * in.config.heads_per_kv());
        const auto of_row = partials.subspan(static_cast<std::size_t>(column - first),
                                             static_cast<std::size_t>(row_end - column));
        if (in.lies_in_place(row, stretch)) {
            continue;
        }
        if (in.sees(row, stretch)) {
            run_scattered_row(in, kv_head, column, stretch, of_row, copy);
        } else {
            clear_partials(in, of_row);
        }
    }
}

}  // namespace

void run_chunk(
    const AttentionNode& in, int kv_head, int first, int chunk, std::span<float* const> partials) {
    const Stretch stretch = in.stretch(chunk);
    if (stretch.count == 0) {
        clear_partials(in, partials);
        return;
    }
    Columns columns;
    for (std::size_t c = 0; c < partials.size(); ++c) {
        const int column = first + static_cast<int>(c);
        const int row = in.row_of(column);
        if (in.lies_in_place(row, stretch)) {
            columns.add(in.query(kv_head, column), in.row_mask(row, stretch), partials[c]);
        }
    }
    if (columns.size() > 0) {
        columns.run(in.config, stretch.count, in.rows(kv_head, stretch));
    }
    if (columns.size() < partials.size()) {
        run_scattered_rows(in, kv_head, first, stretch, partials);
    }
}

}  // namespace knap
