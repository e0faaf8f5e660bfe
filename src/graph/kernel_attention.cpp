#include "graph/kernel_attention.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "graph/attention_node.h"
#include "graph/chunk_columns.h"
#include "graph/custom_node.h"
#include "kernels/attention/attention.h"

namespace knap {
namespace {

const ModelConfig& config_of(void* userdata) {
    return *static_cast<const ModelConfig*>(userdata);
}

const AttentionKernel& attention_kernel() {
    return attention_kernels().front();
}

// Partial results of every (KV head, chunk), f32 [partial_size, n_columns, n_chunks, n_kv_heads];
// each thread takes a contiguous range of chunks, which is what memory likes.
void compute_partials(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const AttentionNode in(node, config_of(userdata));
    const auto size = static_cast<std::ptrdiff_t>(partial_size(in.config.head_dim));
    const int n_items = in.config.n_kv_heads * in.n_chunks();
    std::array<float*, kMaxAttentionColumns> partials;
    const ThreadShare share(n_items, thread, n_threads);
    for (int item = static_cast<int>(share.begin); item < share.end; ++item) {
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
    const AttentionNode in(partials, config_of(userdata));
    const int head_dim = in.config.head_dim;
    const auto size = static_cast<std::ptrdiff_t>(partial_size(head_dim));
    const int n_all = in.n_columns() * in.config.n_kv_heads;
    std::array<float, partial_size(kMaxAttentionHeadDim)> state;
    const ThreadShare share(n_all, thread, n_threads);
    for (int i = static_cast<int>(share.begin); i < share.end; ++i) {
        const int kv_head = i / in.n_columns();
        const int column = i % in.n_columns();
        clear_partial(head_dim, state.data());
        for (int chunk = 0; chunk < in.n_chunks(); ++chunk) {
            const std::ptrdiff_t at =
                (std::ptrdiff_t{kv_head} * in.n_chunks() + chunk) * in.n_columns() + column;
            attention_kernel().merge(head_dim, state.data(),
                                     static_cast<const float*>(partials->data) + at * size);
        }
        finish_partial(head_dim, state.data(),
                       static_cast<float*>(node->data) + in.column_offset(kv_head, column));
    }
}

bool sees_chunk(const AttentionNode& in, int first, int n_columns, int chunk) {
    const Stretch stretch = in.stretch(chunk);
    for (int row = in.row_of(first); row <= in.row_of(first + n_columns - 1); ++row) {
        if (in.sees(row, stretch)) {
            return true;
        }
    }
    return false;
}

// A block of columns of one KV head over the whole context, chunk by chunk.
void run_block(const AttentionNode& in, int kv_head, int first, int n_columns, float* out) {
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
            attention_kernel().merge(head_dim, states.data() + c * size, places[c]);
        }
    }
    for (int c = 0; c < n_columns; ++c) {
        finish_partial(head_dim, states.data() + static_cast<std::size_t>(c) * size,
                       out + in.column_offset(kv_head, first + c));
    }
}

// Many rows: each thread takes whole blocks of columns, in turn, since later rows see more.
void compute_blocks(ggml_tensor* node, int thread, int n_threads, void* userdata) {
    const AttentionNode in(node, config_of(userdata));
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
                                    const KvStore& cache,
                                    int layer,
                                    ggml_tensor* queries,
                                    const AttentionBlock& block,
                                    const BlockInputs& inputs) {
    const auto& [mask, runs, tree] = inputs;
    const std::int64_t n_rows = block.n_rows;
    const std::int64_t n_columns = n_rows * config.heads_per_kv();
    KNAP_ASSERT(block.n_kv % kAttentionStep == 0 && ggml_is_contiguous(queries),
                "the kernel's preconditions");
    KNAP_ASSERT(runs != nullptr || (block.n_sinks == 0 && block.recent_row == 0),
                "windows come with their runs");
    KNAP_ASSERT(tree == nullptr || (runs == nullptr && block.first == 0),
                "a tree is one block of full attention");
    // All of the cache: which of its rows are read is known when the graph runs.
    const KvTensors cached = cache.tensors(layer);
    std::array<ggml_tensor*, static_cast<std::size_t>(AttentionSource::count)> sources{
        queries, mask, cached.keys, cached.values, cached.key_scales, cached.value_scales,
        runs,    tree};
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
