// Our attention kernel over the tasks of a pass: for threads of our own, and as a node of a ggml
// graph, which runs on ggml's thread pool between ggml's own operators.
#pragma once

#include <cstddef>
#include <span>

#include "ggml.h"

#include "graph/attention/attention_tasks.h"
#include "graph/cache/ggml_kv_store.h"

namespace knap {

// What the attention of one layer reads and writes.
struct AttentionData {
    const float* queries = nullptr;  // [head_dim, n_heads, n_rows], rotated
    float* out = nullptr;            // the same shape
    KvTensors cached{};              // of the layer, in a tiled layout
    const float* sinks = nullptr;    // [n_heads] scores of a position without a value; null: none
    // What is read after the attention, to be fetched while the last chunk of a task is computed.
    std::span<const std::byte> next{};
};

// Computes one of the shares that `tasks` has planned. The shares of a layer may be computed by any
// threads in any order.
void run_attention_share(const AttentionData& data, const AttentionTasks& tasks, int share);

// `queries` f32 [head_dim, n_heads, n_rows], `sinks` f32 [n_heads] or null; the cache has a tiled
// layout. Returns f32 [n_heads * head_dim, n_rows]. What the rows attend to is read from `tasks`
// when the graph runs, so that one graph serves every pass of as many rows. Rows beyond those of
// the pass are padding, and zero. `tasks` must outlive the graph.
ggml_tensor* build_cpu_attention(ggml_context* ctx,
                                 const GgmlKvStore& cache,
                                 int layer,
                                 ggml_tensor* sinks,
                                 ggml_tensor* queries,
                                 const AttentionTasks& tasks);

}  // namespace knap
