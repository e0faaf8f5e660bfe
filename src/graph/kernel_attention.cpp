#include "graph/kernel_attention.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "graph/attention_layout.h"
#include "kernels/attention.h"

namespace knap {
namespace {

int count_chunks(int n_kv) {
    return (n_kv + kAttentionChunk - 1) / kAttentionChunk;
}

// Chunks that a block may touch. Chunks are cut at multiples of their size in the cache, so where
// the second run may begin anywhere it may touch one more.
int count_chunks(const AttentionBlock& block, bool moves) {
    const int n_slack = moves ? kAttentionChunk - kRunStep : 0;
    return count_chunks(block.n_sinks) + count_chunks(block.n_recent() + n_slack);
}

// A stretch of positions within one chunk: where its columns of the mask begin, and its cache rows.
struct Stretch {
    int column;
    int row;
    int count;  // 0 for the chunks that a run happens not to touch
};

// Sources of an attention node, in this order.
enum Source {
    kQueries,
    kMask,
    kCachedKeys,
    kCachedValues,
    kKeyScales,
    kValueScales,
    kRuns,
    kSourceCount
};

// The sources of an attention node, as plain numbers and pointers. A column of a KV head is (row,
// query head of the group): column c is row c / heads_per_kv.
struct Inputs {
    Inputs(const ggml_tensor* node, const ModelConfig& model_config)
        : config(model_config),
          queries(static_cast<const float*>(node->src[kQueries]->data)),
          mask(static_cast<const std::uint16_t*>(node->src[kMask]->data)),
          cached{node->src[kCachedKeys], node->src[kCachedValues], node->src[kKeyScales],
                 node->src[kValueScales]},
          block{.n_rows = static_cast<int>(node->src[kMask]->ne[1]),
                .n_kv = static_cast<int>(node->src[kMask]->ne[0])} {
        if (const ggml_tensor* runs = node->src[kRuns]) {
            block.n_sinks = static_cast<const std::int32_t*>(runs->data)[0];
            block.recent_row = static_cast<const std::int32_t*>(runs->data)[1];
            moves = true;
        }
    }

    int n_columns() const { return block.n_rows * config.heads_per_kv(); }
    int n_chunks() const { return count_chunks(block, moves); }
    // Chunks of the first run, then those of the second.
    Stretch stretch(int chunk) const {
        const int n_before = count_chunks(block.n_sinks);
        if (chunk < n_before) {
            const int row = chunk * kAttentionChunk;
            return {row, row, std::min(kAttentionChunk, block.n_sinks - row)};
        }
        const int first = (block.recent_row / kAttentionChunk + chunk - n_before) * kAttentionChunk;
        const int begin = std::max(first, block.recent_row);
        const int end = std::min(first + kAttentionChunk, block.recent_row + block.n_recent());
        return {block.n_sinks + begin - block.recent_row, begin, std::max(0, end - begin)};
    }
    // Where the numbers of a column lie in a tensor [head_dim, n_heads, n_rows].
    std::ptrdiff_t column_offset(int kv_head, int column) const {
        const int group = config.heads_per_kv();
        const int head = kv_head * group + column % group;
        return (std::ptrdiff_t{column / group} * config.n_heads + head) * config.head_dim;
    }
    const std::uint16_t* column_mask(int column, const Stretch& stretch) const {
        return mask + std::ptrdiff_t{column / config.heads_per_kv()} * block.n_kv + stretch.column;
    }

    bool is_int8() const { return cached.key_scales != nullptr; }
    HalfRows half_rows(int kv_head, const Stretch& stretch) const {
        using Half = const std::uint16_t;
        return {.keys = cached_row<Half>(cached.keys, kv_head, stretch.row),
                .values = cached_row<Half>(cached.values, kv_head, stretch.row),
                .next = next_rows(kv_head, stretch)};
    }
    Int8Rows int8_rows(int kv_head, const Stretch& stretch) const {
        using Half = const std::uint16_t;
        return {.keys = cached_row<const std::uint8_t>(cached.keys, kv_head, stretch.row),
                .key_scales = cached_row<Half>(cached.key_scales, kv_head, stretch.row),
                .values = cached_row<const std::int8_t>(cached.values, kv_head, stretch.row),
                .value_scales = cached_row<Half>(cached.value_scales, kv_head, stretch.row),
                .next = next_rows(kv_head, stretch)};
    }

    const ModelConfig& config;
    const float* queries;
    const std::uint16_t* mask;
    KvTensors cached;
    AttentionBlock block;
    bool moves = false;  // the second run begins where an input says

  private:
    // Memory is mostly read in its own order, so the rows that follow are probably next.
    NextRows next_rows(int kv_head, const Stretch& stretch) const {
        const int end = stretch.row + stretch.count;
        return {.keys = cached_row<const std::byte>(cached.keys, kv_head, end),
                .values = cached_row<const std::byte>(cached.values, kv_head, end),
                .bytes = static_cast<std::ptrdiff_t>(cached.keys->nb[1]) * stretch.count};
    }
};

const ModelConfig& config_of(void* userdata) {
    return *static_cast<const ModelConfig*>(userdata);
}

const AttentionKernel& kernel() {
    return attention_kernels().front();
}

// One chunk of the context for columns [first, first + partials.size()) of a KV head.
void run_chunk(
    const Inputs& in, int kv_head, int first, int chunk, std::span<float* const> partials) {
    const Stretch stretch = in.stretch(chunk);
    if (stretch.count == 0) {
        for (float* partial : partials) {
            clear_partial(in.config.head_dim, partial);
        }
        return;
    }
    std::array<const float*, kMaxAttentionColumns> queries;
    std::array<const std::uint16_t*, kMaxAttentionColumns> masks;
    for (int c = 0; c < static_cast<int>(partials.size()); ++c) {
        queries[static_cast<std::size_t>(c)] = in.queries + in.column_offset(kv_head, first + c);
        masks[static_cast<std::size_t>(c)] = in.column_mask(first + c, stretch);
    }
    const AttentionChunk columns{
        .head_dim = in.config.head_dim,
        .n_columns = static_cast<int>(partials.size()),
        .n_positions = stretch.count,
        .scale = in.config.attention_scale,
        .queries = queries.data(),
        .masks = masks.data(),
        .partials = partials.data(),
    };
    if (in.is_int8()) {
        kernel().run_int8_chunk(columns, in.int8_rows(kv_head, stretch));
    } else {
        kernel().run_chunk(columns, in.half_rows(kv_head, stretch));
    }
}

// Partial results of every (KV head, chunk), f32 [partial_size, n_columns, n_chunks, n_kv_heads];
// each thread takes a contiguous range of chunks, which is what memory likes.
void compute_partials(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const Inputs in(node, config_of(userdata));
    const auto size = static_cast<std::ptrdiff_t>(partial_size(in.config.head_dim));
    const int n_items = in.config.n_kv_heads * in.n_chunks();
    std::array<float*, kMaxAttentionColumns> partials;
    for (int item = n_items * thread / n_threads; item < n_items * (thread + 1) / n_threads;
         ++item) {
        for (int c = 0; c < in.n_columns(); ++c) {
            partials[static_cast<std::size_t>(c)] =
                static_cast<float*>(node->data) +
                (std::ptrdiff_t{item} * in.n_columns() + c) * size;
        }
        run_chunk(in, item / in.n_chunks(), 0, item % in.n_chunks(),
                  std::span(partials).first(static_cast<std::size_t>(in.n_columns())));
    }
}

// Merges the partial results of compute_partials(), columns shared out over the threads.
void merge_partials(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const ggml_tensor* partials = node->src[0];
    const Inputs in(partials, config_of(userdata));
    const int head_dim = in.config.head_dim;
    const auto size = static_cast<std::ptrdiff_t>(partial_size(head_dim));
    const int n_all = in.n_columns() * in.config.n_kv_heads;
    std::array<float, partial_size(kMaxAttentionHeadDim)> state;
    for (int i = n_all * thread / n_threads; i < n_all * (thread + 1) / n_threads; ++i) {
        const int kv_head = i / in.n_columns();
        const int column = i % in.n_columns();
        clear_partial(head_dim, state.data());
        for (int chunk = 0; chunk < in.n_chunks(); ++chunk) {
            const std::ptrdiff_t at =
                (std::ptrdiff_t{kv_head} * in.n_chunks() + chunk) * in.n_columns() + column;
            kernel().merge(head_dim, state.data(),
                           static_cast<const float*>(partials->data) + at * size);
        }
        finish_partial(head_dim, state.data(),
                       static_cast<float*>(node->data) + in.column_offset(kv_head, column));
    }
}

bool sees_chunk(const Inputs& in, int first, int n_columns, int chunk) {
    const Stretch stretch = in.stretch(chunk);
    for (int c = first; c < first + n_columns; ++c) {
        const std::uint16_t* mask = in.column_mask(c, stretch);
        if (std::any_of(mask, mask + stretch.count,
                        [](std::uint16_t bits) { return bits != kHiddenBits; })) {
            return true;
        }
    }
    return false;
}

// A block of columns of one KV head over the whole context, chunk by chunk.
void run_block(const Inputs& in, int kv_head, int first, int n_columns, float* out) {
    const int head_dim = in.config.head_dim;
    const std::size_t size = partial_size(head_dim);
    std::array<float, kMaxAttentionColumns * partial_size(kMaxAttentionHeadDim)> states;
    std::array<float, kMaxAttentionColumns * partial_size(kMaxAttentionHeadDim)> partials;
    std::array<float*, kMaxAttentionColumns> places;
    for (std::size_t c = 0; c < static_cast<std::size_t>(n_columns); ++c) {
        clear_partial(head_dim, states.data() + c * size);
        places[c] = partials.data() + c * size;
    }
    for (int chunk = 0; chunk < in.n_chunks(); ++chunk) {
        if (!sees_chunk(in, first, n_columns, chunk)) {
            continue;  // above the diagonal of a prompt, or between sinks and window
        }
        run_chunk(in, kv_head, first, chunk,
                  std::span(places).first(static_cast<std::size_t>(n_columns)));
        for (std::size_t c = 0; c < static_cast<std::size_t>(n_columns); ++c) {
            kernel().merge(head_dim, states.data() + c * size, places[c]);
        }
    }
    for (int c = 0; c < n_columns; ++c) {
        finish_partial(head_dim, states.data() + static_cast<std::size_t>(c) * size,
                       out + in.column_offset(kv_head, first + c));
    }
}

// Many rows: each thread takes whole blocks of columns, in turn, since later rows see more.
void compute_blocks(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const Inputs in(node, config_of(userdata));
    const int n_blocks = (in.n_columns() + kMaxAttentionColumns - 1) / kMaxAttentionColumns;
    for (int i = thread; i < n_blocks * in.config.n_kv_heads; i += n_threads) {
        const int first = i / in.config.n_kv_heads * kMaxAttentionColumns;
        run_block(in, i % in.config.n_kv_heads, first,
                  std::min(kMaxAttentionColumns, in.n_columns() - first),
                  static_cast<float*>(node->data));
    }
}

}  // namespace

bool kernel_attention_fits(const ModelConfig& config, CacheType type_k, CacheType type_v) {
    return has_fast_attention() && type_k == type_v && type_k != CacheType::f32 &&
           config.head_dim % kKeyTile == 0 && config.head_dim <= kMaxAttentionHeadDim;
}

ggml_tensor* build_kernel_attention(ggml_context* ctx,
                                    const ModelConfig& config,
                                    const KvCache& cache,
                                    int layer,
                                    ggml_tensor* queries,
                                    const AttentionBlock& block,
                                    ggml_tensor* mask,
                                    ggml_tensor* runs) {
    const std::int64_t n_rows = block.n_rows;
    const std::int64_t n_columns = n_rows * config.heads_per_kv();
    KNAP_ASSERT(block.n_kv % kAttentionStep == 0 && ggml_is_contiguous(queries),
                "the kernel's preconditions");
    KNAP_ASSERT(runs != nullptr || (block.n_sinks == 0 && block.recent_row == 0),
                "windows come with their runs");
    // All of the cache: which of its rows are read is known when the graph runs.
    const KvTensors cached = cache.tensors(layer);
    std::array<ggml_tensor*, kSourceCount> sources{
        queries, mask, cached.keys, cached.values, cached.key_scales, cached.value_scales, runs};
    auto* userdata = const_cast<ModelConfig*>(&config);  // ggml passes it back as it is
    const int n_chunks = count_chunks(block, runs != nullptr);
    if (n_columns > kMaxAttentionColumns ||
        n_chunks == 1) {  // with one chunk there is nothing to merge
        return ggml_custom_4d(ctx, GGML_TYPE_F32, config.n_embd_q(), n_rows, 1, 1, sources.data(),
                              sources.size(), compute_blocks, GGML_N_TASKS_MAX, userdata);
    }
    ggml_tensor* partials =
        ggml_custom_4d(ctx, GGML_TYPE_F32, static_cast<std::int64_t>(partial_size(config.head_dim)),
                       n_columns, n_chunks, config.n_kv_heads, sources.data(), sources.size(),
                       compute_partials, GGML_N_TASKS_MAX, userdata);
    return ggml_custom_4d(ctx, GGML_TYPE_F32, config.n_embd_q(), n_rows, 1, 1, &partials, 1,
                          merge_partials, GGML_N_TASKS_MAX, userdata);
}

}  // namespace knap
