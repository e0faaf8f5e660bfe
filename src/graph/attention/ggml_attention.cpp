#include "graph/attention/ggml_attention.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/error.h"
#include "device/backend.h"
#include "graph/attention/cpu_attention.h"

namespace knap {
namespace {

// Rows [block.first, block.first + block.n_rows) of [head_dim, n_heads, n_rows].
ggml_tensor* block_rows(ggml_context* ctx, ggml_tensor* queries, const AttentionBlock& block) {
    if (block.n_rows == queries->ne[2]) {
        return queries;
    }
    return ggml_view_3d(ctx, queries, queries->ne[0], queries->ne[1], block.n_rows, queries->nb[1],
                        queries->nb[2], queries->nb[2] * static_cast<std::size_t>(block.first));
}

// [head_dim, n_heads, n_rows] -> [head_dim, n_rows * heads_per_kv, n_kv_heads]: the columns of one
// KV head are its query heads, each with all rows.
ggml_tensor* fold_queries(ggml_context* ctx, const ModelConfig& config, ggml_tensor* q) {
    const std::int64_t n_columns = q->ne[2] * config.heads_per_kv();
    if (q->ne[2] > 1) {
        q = ggml_cont(ctx, ggml_permute(ctx, q, 0, 2, 1, 3));
    }
    q = ggml_reshape_3d(ctx, q, config.head_dim, n_columns, config.n_kv_heads);
    return n_columns == 1 ? ggml_pad(ctx, q, 0, 1, 0, 0) : q;
}

// Rows [first, first + count) of `x`, which has them along dimension `dim`.
ggml_tensor* cut_rows(ggml_context* ctx, ggml_tensor* x, int dim, int first, int count) {
    std::array<std::int64_t, 3> size{x->ne[0], x->ne[1], x->ne[2]};
    size[static_cast<std::size_t>(dim)] = count;
    return ggml_view_3d(ctx, x, size[0], size[1], size[2], x->nb[1], x->nb[2],
                        x->nb[dim] * static_cast<std::size_t>(first));
}

// The two runs of cache rows that a block reads.
struct Runs {
    ggml_tensor* sinks;   // null when there are none, or they follow the recent rows
    ggml_tensor* recent;  // with the sinks that follow them
};

// `view(n)` gives the first n rows of the cache, which lie along dimension `dim`.
template <typename View>
Runs find_runs(ggml_context* ctx, const AttentionBlock& block, int dim, View view) {
    const int n_rows = block.sinks_follow ? block.n_kv : block.n_recent();
    ggml_tensor* recent = view(block.recent_row + n_rows);
    if (block.recent_row > 0) {
        recent = cut_rows(ctx, recent, dim, block.recent_row, n_rows);
    }
    const bool has_sinks = block.n_sinks > 0 && !block.sinks_follow;
    return {has_sinks ? view(block.n_sinks) : nullptr, recent};
}

// Each [head_dim, rows of the run, n_kv_heads].
Runs key_runs(ggml_context* ctx, const GgmlKvStore& cache, int layer, const AttentionBlock& block) {
    return find_runs(ctx, block, 1, [&](int n) { return cache.keys(ctx, layer, block.page, n); });
}

// As keys, or each [rows of the run, head_dim, n_kv_heads] where values are transposed.
Runs value_runs(ggml_context* ctx,
                const GgmlKvStore& cache,
                int layer,
                const AttentionBlock& block) {
    const int dim = cache.layout() == KvLayout::transposed_values ? 0 : 1;
    return find_runs(ctx, block, dim,
                     [&](int n) { return cache.values(ctx, layer, block.page, n); });
}

// A copy of both runs, one after the other.
ggml_tensor* join_runs(ggml_context* ctx, const Runs& runs, int dim) {
    return runs.sinks != nullptr ? ggml_concat(ctx, runs.sinks, runs.recent, dim) : runs.recent;
}

// A product that GPUs do not sum in half precision, as they would by default.
ggml_tensor* multiply(ggml_context* ctx, ggml_tensor* a, ggml_tensor* b) {
    ggml_tensor* product = ggml_mul_mat(ctx, a, b);
    ggml_prec_set_acc(product, GGML_PREC_F32);
    return product;
}

// [n_kv, n_columns, n_kv_heads] of columns [head_dim, n_columns, n_kv_heads]
ggml_tensor* folded_scores(ggml_context* ctx, const Runs& keys, ggml_tensor* columns) {
    ggml_tensor* recent = multiply(ctx, keys.recent, columns);
    return keys.sinks != nullptr ? ggml_concat(ctx, multiply(ctx, keys.sinks, columns), recent, 0)
                                 : recent;
}

// [head_dim, n_columns, n_kv_heads]
ggml_tensor* folded_values(ggml_context* ctx,
                           const AttentionBlock& block,
                           const Runs& values,
                           ggml_tensor* weights) {
    if (values.sinks == nullptr) {
        return multiply(ctx, values.recent, weights);
    }
    ggml_tensor* of_sinks = cut_rows(ctx, weights, 0, 0, block.n_sinks);
    ggml_tensor* of_recent = cut_rows(ctx, weights, 0, block.n_sinks, block.n_recent());
    return ggml_add(ctx, multiply(ctx, values.sinks, of_sinks),
                    multiply(ctx, values.recent, of_recent));
}

// Every number twice: [2 n].
ggml_tensor* repeat_each(ggml_context* ctx, ggml_tensor* numbers) {
    const std::int64_t n = numbers->ne[0];
    ggml_tensor* twice = ggml_repeat_4d(ctx, ggml_reshape_2d(ctx, numbers, 1, n), 2, n, 1, 1);
    return ggml_reshape_1d(ctx, twice, 2 * n);
}

ggml_tensor* folded_block(ggml_context* ctx,
                          const ModelConfig& config,
                          const GgmlKvStore& cache,
                          int layer,
                          ggml_tensor* sinks,
                          ggml_tensor* q,
                          const AttentionBlock& block,
                          ggml_tensor* mask) {
    const std::int64_t n_columns = std::int64_t{block.n_rows} * config.heads_per_kv();
    const bool is_padded = n_columns == 1;
    const std::int64_t n_stored = is_padded ? 2 : n_columns;
    ggml_tensor* columns = fold_queries(ctx, config, q);

    ggml_tensor* scores = folded_scores(ctx, key_runs(ctx, cache, layer, block), columns);
    // One mask row serves every head; the padding column is a head more that nobody reads.
    scores = ggml_reshape_3d(ctx, scores, block.n_kv, block.n_rows,
                             n_stored * config.n_kv_heads / block.n_rows);
    float scale = config.attention_scale;
    if (config.soft_cap != 0.0f) {
        scores = ggml_tanh_inplace(ctx, ggml_scale_inplace(ctx, scores, scale / config.soft_cap));
        scale = config.soft_cap;
    }
    scores = ggml_soft_max_ext_inplace(ctx, scores, mask, scale, 0.0f);
    if (sinks != nullptr) {
        ggml_soft_max_add_sinks(scores, is_padded ? repeat_each(ctx, sinks) : sinks);
    }
    scores = ggml_reshape_3d(ctx, scores, block.n_kv, n_stored, config.n_kv_heads);

    ggml_tensor* out = folded_values(ctx, block, value_runs(ctx, cache, layer, block), scores);
    if (is_padded) {
        out = ggml_cont(
            ctx, ggml_view_3d(ctx, out, out->ne[0], 1, out->ne[2], out->nb[1], out->nb[2], 0));
    }
    if (block.n_rows == 1) {
        return ggml_reshape_2d(ctx, out, config.n_embd_q(), 1);
    }
    out = ggml_reshape_3d(ctx, out, config.head_dim, block.n_rows, config.n_heads);
    return ggml_cont_2d(ctx, ggml_permute(ctx, out, 0, 2, 1, 3), config.n_embd_q(), block.n_rows);
}

// The single column of a view, or line of a mask, so many times without a copy.
void repeat(ggml_tensor* view, int n) {
    view->ne[1] = n;
    view->nb[1] = 0;
}

// [head_dim, n_heads, n_rows] as ggml's operator wants it, [head_dim, n_columns, n_heads]. Padding
// is the only row again and again, or zeros behind several.
ggml_tensor* flash_queries(ggml_context* ctx, ggml_tensor* q, const AttentionBlock& block) {
    if (block.n_padding > 0 && block.n_rows > 1) {
        q = ggml_pad(ctx, q, 0, 0, block.n_padding, 0);
    }
    ggml_tensor* columns = ggml_permute(ctx, q, 0, 2, 1, 3);
    if (block.n_padding > 0 && block.n_rows == 1) {
        repeat(columns, block.n_columns());
    }
    return columns;
}

// ggml's operator reads one run of rows, so two are copied together.
ggml_tensor* flash_block(ggml_context* ctx,
                         const ModelConfig& config,
                         const GgmlKvStore& cache,
                         int layer,
                         ggml_tensor* sinks,
                         ggml_tensor* q,
                         const AttentionBlock& block,
                         ggml_tensor* mask) {
    ggml_tensor* keys = join_runs(ctx, key_runs(ctx, cache, layer, block), 1);
    ggml_tensor* values = join_runs(ctx, value_runs(ctx, cache, layer, block), 1);
    ggml_tensor* line = ggml_view_2d(ctx, mask, mask->ne[0], mask->ne[1], mask->nb[1], 0);
    ggml_tensor* out = ggml_flash_attn_ext(ctx, flash_queries(ctx, q, block), keys, values, line,
                                           config.attention_scale, 0.0f, config.soft_cap);
    ggml_flash_attn_ext_add_sinks(out, sinks);
    ggml_prec_set_acc(out, GGML_PREC_F32);
    if (block.n_mask_rows() < block.n_columns()) {
        repeat(line, block.n_columns());  // only now: ggml wants a mask that lies in one piece
    }
    if (block.n_padding > 0) {
        return ggml_view_2d(ctx, out, config.n_embd_q(), block.n_rows, out->nb[2], 0);
    }
    return ggml_reshape_2d(ctx, out, config.n_embd_q(), block.n_rows);
}

// Joins blocks pairwise, so that each row is copied a logarithmic number of times.
template <typename BuildBlock>
ggml_tensor* join_blocks(ggml_context* ctx,
                         std::size_t first,
                         std::size_t count,
                         BuildBlock build) {
    if (count == 1) {
        return build(first);
    }
    const std::size_t half = count / 2;
    ggml_tensor* left = join_blocks(ctx, first, half, build);
    ggml_tensor* right = join_blocks(ctx, first + half, count - half, build);
    return ggml_concat(ctx, left, right, 1);
}

}  // namespace

BlockRules block_rules(const ModelConfig& config,
                       const Backend& backend,
                       const AttentionPolicy& policy) {
    BlockRules rules{.n_score_heads = policy.path == AttentionPath::folded ? config.n_heads : 0};
    if (backend.is_host()) {
        return rules;
    }
    rules.step = 256;
    if (policy.path != AttentionPath::flash) {
        return rules;
    }
    // ggml-cuda's flash attention is fast where it reads whole numbers of 256 rows. Few query heads
    // to a KV head take its vector kernel for a single row, which falls behind the one for two rows
    // as the context grows. To join two runs takes two kernels a layer, which a draft's attention
    // over a window does not outweigh.
    constexpr int kFewHeads = 4;
    constexpr int kLongContext = 8192;
    rules.pad_from = config.heads_per_kv() <= kFewHeads ? kLongContext : 0;
    rules.one_run = true;
    // Several columns at once are fast where a kernel takes an even number of query heads together,
    // which read the same keys; otherwise they slow plain decoding down by a fifth.
    const bool shares_keys = config.heads_per_kv() % 2 == 0;
    rules.exact_rows = policy.exact_rows;
    rules.exact_columns = shares_keys ? rules.exact_rows : 1;
    return rules;
}

ggml_tensor* build_attention(ggml_context* ctx,
                             const ModelConfig& config,
                             const GgmlKvStore& cache,
                             int layer,
                             ggml_tensor* sinks,
                             ggml_tensor* queries,
                             const AttentionInputs& inputs) {
    if (inputs.tasks != nullptr) {
        return build_cpu_attention(ctx, cache, layer, sinks, queries, *inputs.tasks);
    }
    const std::span<const AttentionBlock> blocks = inputs.blocks;
    const std::span<ggml_tensor* const> masks = inputs.masks;
    KNAP_ASSERT(blocks.size() == masks.size() && !blocks.empty(), "one mask a block");
    const AttentionPath path = path_for(cache.layout());
    return join_blocks(ctx, 0, blocks.size(), [&](std::size_t i) {
        ggml_tensor* q = block_rows(ctx, queries, blocks[i]);
        return path == AttentionPath::folded
                   ? folded_block(ctx, config, cache, layer, sinks, q, blocks[i], masks[i])
                   : flash_block(ctx, config, cache, layer, sinks, q, blocks[i], masks[i]);
    });
}

}  // namespace knap
