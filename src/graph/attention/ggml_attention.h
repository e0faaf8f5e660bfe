// The attention operator as graph nodes: queries of a pass against the cache, block by block. There
// are three implementations; the layout of the cache determines which one runs.
#pragma once

#include <span>
#include <vector>

#include "ggml.h"

#include "forward/attention_blocks.h"
#include "graph/attention/attention_policy.h"
#include "graph/attention/attention_tasks.h"
#include "graph/cache/ggml_kv_store.h"
#include "model/config.h"

namespace knap {

// How passes over these layers are split into blocks.
BlockRules block_rules(const ModelConfig& config,
                       const Backend& backend,
                       const AttentionPolicy& policy);

// What the attentions of a group read besides queries and cache.
struct AttentionInputs {
    const AttentionTasks* tasks = nullptr;  // on the kernel path; else the following
    std::span<const AttentionBlock> blocks{};
    std::vector<ggml_tensor*> masks{};  // of each block, f16 [n_kv, n_mask_rows()]
};

// `queries` f32 [head_dim, n_heads, n_rows] after RoPE; `sinks` f32 [n_heads]: for each head the
// score of a position without a value, or null. Returns f32 [n_heads * head_dim, n_rows].
//
// On the folded path the cache is read once for all query heads of a KV head. For a single column
// ggml would use a kernel that rounds differently, so it is padded to two: the result of a row does
// not depend on the number of rows in the pass.
ggml_tensor* build_attention(ggml_context* ctx,
                             const ModelConfig& config,
                             const GgmlKvStore& cache,
                             int layer,
                             ggml_tensor* sinks,
                             ggml_tensor* queries,
                             const AttentionInputs& inputs);

}  // namespace knap
