#include "graph/attention/cpu_attention.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <variant>

#include "base/error.h"
#include "base/rounding.h"
#include "graph/attention/attention_mask.h"
#include "graph/attention/chunk_copy.h"
#include "graph/custom_node.h"
#include "kernels/attention/attention.h"

namespace knap {
namespace {

// Sources of a node, in this order.
enum Source : int { queries, cached_keys, cached_values, key_scales, value_scales, sinks, count };

const AttentionKernel& kernel() {
    return attention_kernels().front();
}

struct ColumnMask {
    const std::uint16_t* numbers = nullptr;
    int n_visible = kUnknownPrefix;
};

// Masks of columns that see the first rows of a chunk: visible numbers, then hidden ones.
struct PrefixMasks {
    PrefixMasks() { std::fill(numbers.begin() + kAttentionChunk, numbers.end(), kHiddenBits); }
    // Shows the first `n` positions.
    ColumnMask first(int n) const {
        return {.numbers = numbers.data() + kAttentionChunk - n, .n_visible = n};
    }

    std::array<std::uint16_t, 2 * std::size_t{kAttentionChunk}> numbers{};
};

const PrefixMasks& prefix_masks() {
    static const PrefixMasks masks;
    return masks;
}

// Columns of one KV head that meet the same rows of the cache.
class Columns {
  public:
    std::size_t size() const { return n_; }
    void add(const float* query, const ColumnMask& mask, float* partial) {
        queries_[n_] = query;
        masks_[n_] = mask.numbers;
        n_visible_[n_] = mask.n_visible;
        partials_[n_] = partial;
        ++n_;
    }
    void run(const ModelConfig& config, int n_positions, const ChunkRows& rows) const {
        const AttentionChunk chunk{.head_dim = config.head_dim,
                                   .n_columns = static_cast<int>(n_),
                                   .n_positions = n_positions,
                                   .scale = config.attention_scale,
                                   .soft_cap = config.soft_cap,
                                   .queries = queries_.data(),
                                   .masks = masks_.data(),
                                   .partials = partials_.data(),
                                   .n_visible = n_visible_.data()};
        if (const auto* int8_rows = std::get_if<Int8Rows>(&rows)) {
            kernel().run_int8_chunk(chunk, *int8_rows);
        } else {
            kernel().run_chunk(chunk, std::get<HalfRows>(rows));
        }
    }

  private:
    std::size_t n_ = 0;
    std::array<const float*, kMaxAttentionColumns> queries_;
    std::array<const std::uint16_t*, kMaxAttentionColumns> masks_;
    std::array<int, kMaxAttentionColumns> n_visible_;
    std::array<float*, kMaxAttentionColumns> partials_;
};

// One task: a block of columns of one KV head.
class Task {
  public:
    Task(const AttentionData& data, const AttentionTasks& tasks, int task)
        : data_(data),
          cached_(data.cached),
          tasks_(tasks),
          config_(tasks.config()),
          block_(tasks.block(task)),
          run_(tasks.run(block_)),
          kv_head_(tasks.kv_head(task)),
          size_(partial_size(config_.head_dim)) {}

    // All chunks, by one thread.
    void run_whole() const {
        std::array<float, kMaxAttentionColumns * partial_size(kMaxAttentionHeadDim)> states;
        std::array<float, kMaxAttentionColumns * partial_size(kMaxAttentionHeadDim)> partials;
        int i = 0;
        if (starts_with_chunk()) {
            run_chunk(i++, states.data());
        } else {
            clear(states.data());
        }
        for (; i < block_.n_chunks; ++i) {
            run_chunk(i, partials.data());
            merge(states.data(), partials.data());
        }
        finish(states.data());
    }

    // Chunks [begin, end), into `partials` of all chunks.
    void run_part(int begin, int end, float* partials) const {
        for (int i = begin; i < end; ++i) {
            run_chunk(i, partials + static_cast<std::size_t>(i) * chunk_size());
        }
    }

    // Once all parts are done.
    void merge_parts(const float* partials) const {
        std::array<float, kMaxAttentionColumns * partial_size(kMaxAttentionHeadDim)> states;
        int i = 0;
        if (starts_with_chunk()) {
            std::copy_n(partials, chunk_size(), states.data());
            ++i;
        } else {
            clear(states.data());
        }
        for (; i < block_.n_chunks; ++i) {
            merge(states.data(), partials + static_cast<std::size_t>(i) * chunk_size());
        }
        finish(states.data());
    }

  private:
    std::size_t n_columns() const { return static_cast<std::size_t>(block_.n_columns); }
    std::size_t chunk_size() const { return n_columns() * size_; }
    int row_of(std::size_t column) const {
        return (block_.first + static_cast<int>(column)) / config_.heads_per_kv();
    }
    // The offset of a column in a tensor [head_dim, n_heads, n_rows].
    std::size_t offset(std::size_t column) const {
        const auto row = static_cast<std::size_t>(run_.first + row_of(column));
        return (row * static_cast<std::size_t>(config_.n_heads) + head_of(column)) *
               static_cast<std::size_t>(config_.head_dim);
    }
    std::size_t head_of(std::size_t column) const {
        const int group = config_.heads_per_kv();
        const int index = block_.first + static_cast<int>(column);
        return static_cast<std::size_t>(kv_head_ * group + index % group);
    }
    const float* query(std::size_t column) const { return data_.queries + offset(column); }

    // Whether the partial results of the first chunk are the first states: merging them with
    // nothing would give the same. A sink comes before any chunk.
    bool starts_with_chunk() const { return data_.sinks == nullptr && block_.n_chunks > 0; }
    void clear(float* states) const {
        for (std::size_t c = 0; c < n_columns(); ++c) {
            if (data_.sinks != nullptr) {
                put_sink(config_.head_dim, data_.sinks[head_of(c)], states + c * size_);
            } else {
                clear_partial(config_.head_dim, states + c * size_);
            }
        }
    }
    void merge(float* states, const float* partials) const {
        for (std::size_t c = 0; c < n_columns(); ++c) {
            kernel().merge(config_.head_dim, states + c * size_, partials + c * size_);
        }
    }
    void finish(const float* states) const {
        for (std::size_t c = 0; c < n_columns(); ++c) {
            finish_partial(config_.head_dim, states + c * size_, data_.out + offset(c));
        }
    }

    // The partial results of every column over one chunk: [partial_size, n_columns]. They depend on
    // what each column attends to and in which order, not on its index or on the other columns.
    void run_chunk(int i, float* partials) const {
        const ChunkSpan& span = tasks_.chunk(block_, i);
        MaskBuffer masks;
        Columns columns;
        ColumnMask mask;
        int last_row = -1;
        for (std::size_t c = 0; c < n_columns(); ++c) {
            const int row = row_of(c);
            if (!lies_in_place(row, span)) {
                continue;
            }
            mask = row == last_row ? mask : masks.of(tasks_, tasks_.sight(run_, row), span);
            last_row = row;
            columns.add(query(c), mask, partials + c * size_);
        }
        if (columns.size() > 0) {
            columns.run(config_, span.count, rows(i));
        }
        if (columns.size() < n_columns()) {
            run_scattered_rows(span, partials);
        }
    }

    // The mask of a row over a span. Those that are no prefix are written here.
    class MaskBuffer {
      public:
        ColumnMask of(const AttentionTasks& tasks, const RowSight& sight, const ChunkSpan& span) {
            std::uint16_t* written = nullptr;
            int n_first = 0;
            for (const SightRun& seen : tasks.sight_runs(sight)) {
                const int begin = std::max(seen.begin - span.first, 0);
                const int end = std::min(seen.end - span.first, span.count);
                if (begin >= end) {
                    continue;
                }
                if (written == nullptr && begin == 0) {
                    n_first = end;
                    continue;
                }
                if (written == nullptr) {
                    written = next();
                    std::fill_n(written, n_first, std::uint16_t{0});
                    std::fill(written + n_first, written + span.count, kHiddenBits);
                }
                std::fill(written + begin, written + end, std::uint16_t{0});
            }
            return written != nullptr ? ColumnMask{written} : prefix_masks().first(n_first);
        }

      private:
        std::uint16_t* next() { return numbers_[n_used_++].data(); }

        std::size_t n_used_ = 0;
        std::array<std::array<std::uint16_t, kAttentionChunk>, kMaxAttentionColumns> numbers_;
    };

    // Whether everything in the span that a row attends to is in the cache at its own position.
    bool lies_in_place(int row, const ChunkSpan& span) const {
        return !tasks_.sight(run_, row).is_scattered ||
               span.first + span.count <= run_.layout.context;
    }

    // The cached rows of a chunk, and where those of the next one begin.
    ChunkRows rows(int i) const {
        using Half = const std::uint16_t;
        const int row = run_.sequence->stored_row(tasks_.chunk(block_, i).first);
        const NextRows next = next_rows(i);
        if (cached_.key_scales == nullptr) {
            return HalfRows{.keys = cached_row<Half>(cached_.keys, kv_head_, row),
                            .values = cached_row<Half>(cached_.values, kv_head_, row),
                            .next = next};
        }
        return Int8Rows{.keys = cached_row<const std::uint8_t>(cached_.keys, kv_head_, row),
                        .key_scales = cached_row<Half>(cached_.key_scales, kv_head_, row),
                        .values = cached_row<const std::int8_t>(cached_.values, kv_head_, row),
                        .value_scales = cached_row<Half>(cached_.value_scales, kv_head_, row),
                        .next = next};
    }
    NextRows next_rows(int i) const {
        if (i + 1 >= block_.n_chunks) {
            const std::size_t half = data_.next.size() / 2;
            return {.keys = data_.next.data(),
                    .values = data_.next.data() + half,
                    .bytes = static_cast<std::ptrdiff_t>(half)};
        }
        const ChunkSpan& next = tasks_.chunk(block_, i + 1);
        const int row = run_.sequence->stored_row(next.first);
        return {.keys = cached_row<const std::byte>(cached_.keys, kv_head_, row),
                .values = cached_row<const std::byte>(cached_.values, kv_head_, row),
                .bytes = static_cast<std::ptrdiff_t>(cached_.keys->nb[1]) * next.count};
    }

    // The columns whose rows do not lie in place, row by row.
    void run_scattered_rows(const ChunkSpan& span, float* partials) const {
        thread_local ChunkCopy copy;
        const int first = round_down(span.first, kAttentionChunk);
        copy.begin(cached_, kv_head_, run_.sequence->stored_row(first));
        for (std::size_t c = 0, end = 0; c < n_columns(); c = end) {
            const int row = row_of(c);
            while (end < n_columns() && row_of(end) == row) {
                ++end;
            }
            if (!lies_in_place(row, span)) {
                run_scattered_row(row, first, c, end, partials, copy);
            }
        }
    }

    // What the row sees of the chunk is put into one piece.
    void run_scattered_row(int row,
                           int first,
                           std::size_t begin_column,
                           std::size_t end_column,
                           float* partials,
                           ChunkCopy& copy) const {
        const RowSight& sight = tasks_.sight(run_, row);
        const int n_all = tasks_.sight_runs(sight).front().end;  // positions
        const int n_seen = std::min(n_all - first, kAttentionChunk);
        if (n_seen <= 0) {
            for (std::size_t c = begin_column; c < end_column; ++c) {
                clear_partial(config_.head_dim, partials + c * size_);
            }
            return;
        }
        const int n_positions = round_up(n_seen, kAttentionStep);
        copy.extend(n_positions);
        const int context = run_.layout.context;
        int position = n_all;
        for (int node = run_.first_row - context + row; node >= 0;
             node = run_.layout.parents[static_cast<std::size_t>(node)]) {
            const int at = --position - first;
            if (0 <= at && at < n_seen) {
                copy.place(at, run_.sequence->stored_row(context + node));
            }
        }
        MaskBuffer masks;
        const ColumnMask mask = masks.of(tasks_, sight, {.first = first, .count = n_positions});
        Columns columns;
        for (std::size_t c = begin_column; c < end_column; ++c) {
            columns.add(query(c), mask, partials + c * size_);
        }
        columns.run(config_, n_positions, copy.rows());
    }

    const AttentionData& data_;
    const KvTensors& cached_;
    const AttentionTasks& tasks_;
    const ModelConfig& config_;
    const ColumnBlock& block_;
    const TaskRun& run_;
    int kv_head_;
    std::size_t size_;
};

void clear_padding(ggml_tensor* node, int n_rows) {
    auto* data = static_cast<std::byte*>(node->data);
    const auto n_used = static_cast<std::size_t>(n_rows) * node->nb[1];
    std::memset(data + n_used, 0, ggml_nbytes(node) - n_used);
}

void compute(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const auto& tasks = *static_cast<const AttentionTasks*>(userdata);
    KNAP_ASSERT(n_threads == tasks.n_shares(), "the work is shared among these threads");
    if (thread == n_threads - 1) {
        clear_padding(node, tasks.n_rows());
    }
    const ggml_tensor* of_heads = node->src[sinks];
    run_attention_share(
        {.queries = static_cast<const float*>(node->src[queries]->data),
         .out = static_cast<float*>(node->data),
         .cached = {.keys = node->src[cached_keys],
                    .values = node->src[cached_values],
                    .key_scales = node->src[key_scales],
                    .value_scales = node->src[value_scales]},
         .sinks = of_heads != nullptr ? static_cast<const float*>(of_heads->data) : nullptr},
        tasks, thread);
}

}  // namespace

void run_attention_share(const AttentionData& data, const AttentionTasks& tasks, int share) {
    const ShareBorder end = tasks.share_end(share);
    ShareBorder at = tasks.share_begin(share);
    for (; at.task < end.task || (at.task == end.task && at.chunk < end.chunk);
         at = {.task = at.task + 1, .chunk = 0}) {
        const int n_chunks = tasks.block(at.task).n_chunks;
        const int end_chunk = at.task == end.task ? end.chunk : n_chunks;
        const Task task(data, tasks, at.task);
        if (at.chunk == 0 && end_chunk == n_chunks) {
            task.run_whole();
            continue;
        }
        float* partials = tasks.partials(at.task);
        task.run_part(at.chunk, end_chunk, partials);
        if (tasks.finish_part(at.task)) {
            task.merge_parts(partials);
        }
    }
}

ggml_tensor* build_cpu_attention(ggml_context* ctx,
                                 const GgmlKvStore& cache,
                                 int layer,
                                 ggml_tensor* sinks,
                                 ggml_tensor* queries,
                                 const AttentionTasks& tasks) {
    KNAP_ASSERT(is_tiled(cache.layout()) && ggml_is_contiguous(queries),
                "the kernel's preconditions");
    // All of the cache: which of its rows are read is known when the graph runs.
    const KvTensors cached = cache.tensors(layer);
    std::array<ggml_tensor*, count> sources{queries,           cached.keys,         cached.values,
                                            cached.key_scales, cached.value_scales, sinks};
    auto* userdata = const_cast<AttentionTasks*>(&tasks);  // ggml passes it back as it is
    return ggml_custom_4d(ctx, GGML_TYPE_F32, tasks.config().n_embd_q(), queries->ne[2], 1, 1,
                          sources.data(), sources.size(), compute, GGML_N_TASKS_MAX, userdata);
}

}  // namespace knap
