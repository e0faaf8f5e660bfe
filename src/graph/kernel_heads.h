// Prepares the heads of a pass for our attention kernel, as one node of a ggml graph: rotates
// queries and keys, and writes keys and values to the cache.
#pragma once

#include "ggml.h"

#include "graph/cache/ggml_kv_store.h"
#include "model/config.h"

namespace knap {

// The rows of a pass before rotation, each f32 [n_heads * head_dim, n_rows] for its number of
// heads. The values of a row are contiguous; the rows need not be.
struct RowHeads {
    ggml_tensor* queries;
    ggml_tensor* keys;
    ggml_tensor* values;
};

// Writes keys and values to the stored rows `slots` and returns the rotated queries, f32 [head_dim,
// n_heads, n_rows]. `rope_table` f32 [n_rot, n_rows] (see graph/rotation.h) holds the rotations of
// each row's pairs. For a cache with a tiled layout. `config` must outlive the graph.
ggml_tensor* build_kernel_heads(ggml_context* ctx,
                                const ModelConfig& config,
                                const GgmlKvStore& cache,
                                int layer,
                                const RowHeads& heads,
                                ggml_tensor* rope_table,
                                const KvSlots& slots);

}  // namespace knap
