// The attention operator: queries of a pass against the cache, block by block.
#pragma once

#include <span>

#include "ggml.h"

#include "graph/attention_layout.h"
#include "kv/kv_cache.h"
#include "model/config.h"

namespace knap {

// `queries` f32 [head_dim, n_heads, n_rows] after RoPE; masks[i] f16 [n_kv, n_rows] of blocks[i].
// Returns f32 [n_heads * head_dim, n_rows].
//
// With transposed values the path is folded: the query heads of one KV head become columns of one product, so the
// cache is read once for all of them. A product of a single column would take another ggml kernel with other rounding
// than many columns take, so it is padded to two: a row's result does not depend on how many rows run with it.
// Otherwise it is ggml's flash attention, which makes no such promise on the CPU.
ggml_tensor* build_attention(ggml_context* ctx,
                             const ModelConfig& config,
                             const KvCache& cache,
                             int layer,
                             ggml_tensor* queries,
                             std::span<const AttentionBlock> blocks,
                             std::span<ggml_tensor* const> masks);

} // namespace knap
