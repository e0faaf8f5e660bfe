// The attention operator: queries of a pass against the cache, block by block. There are three
// implementations; the layout of the cache determines which one runs.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ggml.h"

#include "knap/types.h"

#include "graph/attention_blocks.h"
#include "kv/kv_cache.h"
#include "model/config.h"

namespace knap {

enum class AttentionPath {
    kernel,  // our own kernel; later paths promise less
    folded,  // ggml's matrix products, the query heads of one KV head as columns of one product
    // ggml's flash attention: batch-invariant only on devices other than the host, and only if
    // KvCacheOptions::exact_rows requests it
    flash,
};

// The path for a model on this device. On the host: flash if requested, otherwise our kernel if it
// fits and `kernels` allows it. On other devices: flash if supported, unless it is disabled.
AttentionPath choose_attention(const ModelConfig& config,
                               const RuntimeConfig& runtime,
                               const Backend& backend);
// The cache layout that a path reads, for keys of `type`.
KvLayout layout_for(AttentionPath path, CacheType type);
// Options for a cache of at least `n_rows` rows with the layout for choose_attention()'s path.
// Products with the weights are bit-identical to single-row passes for up to `exact_rows` rows.
KvCacheOptions cache_options(const ModelConfig& config,
                             const RuntimeConfig& runtime,
                             const Backend& backend,
                             int n_rows,
                             int exact_rows = 1);
// The same for each share of the layers.
std::vector<KvCacheOptions> cache_options(const ModelConfig& config,
                                          const RuntimeConfig& runtime,
                                          const LayerMap& layers,
                                          int n_rows,
                                          int exact_rows);
AttentionPath path_for(KvLayout layout);
// The path that promises least among the devices of the cache.
AttentionPath weakest_path(const KvCache& cache);
// The largest batch whose attention, except for trees, is bit-identical to single-row passes.
int exact_attention_rows(const KvCache& cache);
// True if rows of a tree, at full attention, are bit-identical to plain decoding.
bool has_exact_trees(AttentionPath path);
std::string_view to_string(AttentionPath path);  // "kernel", "folded", "flash"

// How passes over these layers are split into blocks.
BlockRules block_rules(const ModelConfig& config, const KvStore& cache);

// What the attentions of a group read besides queries and cache.
struct AttentionInputs {
    std::span<const AttentionBlock> blocks;
    std::vector<ggml_tensor*> masks;  // of each block, f16 [n_kv, n_mask_rows()]
    // On the kernel path:
    std::vector<ggml_tensor*> runs;  // windows: of each block, i32 [2], its n_sinks and recent_row
    ggml_tensor* tree = nullptr;     // full attention of a tree: i32, see TreePaths
};

// `queries` f32 [head_dim, n_heads, n_rows] after RoPE. Returns f32 [n_heads * head_dim, n_rows].
//
// On the folded path the cache is read once for all query heads of a KV head. For a single column
// ggml would use a kernel that rounds differently, so it is padded to two: the result of a row does
// not depend on the number of rows in the pass.
ggml_tensor* build_attention(ggml_context* ctx,
                             const ModelConfig& config,
                             const KvStore& cache,
                             int layer,
                             ggml_tensor* queries,
                             const AttentionInputs& inputs);

}  // namespace knap
