// The attention operator: queries of a pass against the cache, block by block. Which of three ways
// it goes is the cache's layout.
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
    kernel,  // our own kernel; the paths that follow promise less and less
    folded,  // ggml's matrix products, the query heads of one KV head as columns of one product
    // ggml's flash attention, which promises row invariance on other devices than the host alone,
    // where KvCacheOptions::exact_rows asks for it
    flash,
};

// The path for a model on this device. On the host: flash when asked for; our kernel when it fits
// and `kernels` allows it. On another one: flash where it has it, unless that is not wanted.
AttentionPath choose_attention(const ModelConfig& config,
                               const RuntimeConfig& runtime,
                               const Backend& backend);
// The layout that a path reads, for a cache whose keys are of `type`.
KvLayout layout_for(AttentionPath path, CacheType type);
// A cache of `n_rows` rows or a few more, as the path that choose_attention() gives wants it.
// `exact_rows`: up to so many rows of a pass keep the bits of one in products with the weights.
KvCacheOptions cache_options(const ModelConfig& config,
                             const RuntimeConfig& runtime,
                             const Backend& backend,
                             int n_rows,
                             int exact_rows = 1);
// The same of each share of the layers.
std::vector<KvCacheOptions> cache_options(const ModelConfig& config,
                                          const RuntimeConfig& runtime,
                                          const LayerMap& layers,
                                          int n_rows,
                                          int exact_rows);
AttentionPath path_for(KvLayout layout);
// Of a cache on several devices, the path that promises least.
AttentionPath weakest_path(const KvCache& cache);
// Up to how many rows a pass's attention gives each row, but for those of trees, the bits that it
// has in a pass of its own.
int exact_attention_rows(const KvCache& cache);
// Whether rows of a tree, at full attention, have the bits that plain decoding gives them.
bool has_exact_trees(AttentionPath path);
std::string_view to_string(AttentionPath path);  // "kernel", "folded", "flash"

// How passes over these layers are cut into blocks.
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
// On the folded path the cache is read once for all query heads of a KV head. A product of a single
// column would take another ggml kernel with other rounding than many columns take, so it is padded
// to two: a row's result does not depend on how many rows run with it.
ggml_tensor* build_attention(ggml_context* ctx,
                             const ModelConfig& config,
                             const KvStore& cache,
                             int layer,
                             ggml_tensor* queries,
                             const AttentionInputs& inputs);

}  // namespace knap
