// Our attention kernel as a node of a ggml graph. It runs on ggml's thread pool between ggml's own
// operators.
#pragma once

#include "ggml.h"

#include "graph/attention_blocks.h"
#include "kv/kv_store.h"
#include "model/config.h"

namespace knap {

// True if the kernel can run a model with such a cache on this machine and is worth using.
bool kernel_attention_fits(const ModelConfig& config, CacheType type_k, CacheType type_v);

// What a block reads besides queries and cache.
//
// With `runs` the block reads two runs of cache rows. Where the second one begins is read when the
// graph runs, so a window moves without a new graph. Without `runs` the block is full attention,
// and its rows may be those of a `tree`: each is then bit-identical to plain decoding, in which its
// path follows the context without gaps.
struct BlockInputs {
    ggml_tensor* mask;            // f16 [n_kv, n_rows]
    ggml_tensor* runs = nullptr;  // i32 [2]: n_sinks, recent_row
    ggml_tensor* tree = nullptr;  // i32: see TreePaths
};

// `queries` f32 [head_dim, n_heads, n_rows]; the cache has a tiled layout. Returns f32 [n_heads *
// head_dim, n_rows]. Few rows are split over the threads along the context, many along the rows;
// the result of a row is the same. `config` must outlive the graph.
ggml_tensor* build_kernel_attention(ggml_context* ctx,
                                    const ModelConfig& config,
                                    const KvStore& cache,
                                    int layer,
                                    ggml_tensor* queries,
                                    const AttentionBlock& block,
                                    const BlockInputs& inputs);

}  // namespace knap
