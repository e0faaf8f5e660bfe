// Functions that build the modules of a layer as graph nodes. Each takes the residual stream
// [n_embd, n_rows] and returns it with the module's result added, so a skipped module is simply not
// built.
#pragma once

#include <span>

#include "ggml.h"

#include "graph/attention/ggml_attention.h"
#include "graph/cache/ggml_kv_store.h"
#include "model/config.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap {

// What every module of one graph needs.
struct BlockContext {
    ggml_context* ctx;
    ggml_cgraph* graph;
    const ModelConfig& config;
    const ModelTensors& tensors;
    const GgmlKvStore& cache;  // of these layers
    ggml_tensor* positions;    // i32 [n_rows]
    ggml_tensor* rope_table;   // for our kernel, f32 [n_rot, n_rows] (see rotation.h); else null
    ggml_tensor* local_rope_table;  // the same as ModelConfig::local_rope says
    ggml_tensor* unit_pairs;        // the same for layers that do not rotate
    ggml_tensor* divisors;          // of frequencies, f32 [n_rot / 2]; null: none
    ggml_tensor* query_scales;      // f32 [1, 1, n_rows]; null: none
    KvSlots slots;
    std::span<const AttentionInputs> attention;  // [group]
};

// Writes the keys and values of these rows to the cache, then attends to the rows of its group.
// Returns [n_embd, n_rows].
ggml_tensor* build_attention_module(const BlockContext& block,
                                    int layer,
                                    int group,
                                    ggml_tensor* stream);

// Rows use `n_experts` of the layer's experts; 0: as many as in the whole model.
ggml_tensor* build_mlp_module(const BlockContext& block,
                              int layer,
                              int n_experts,
                              ggml_tensor* stream);

// The rows of the embedding: tokens i32 [n_rows] -> [n_embd, n_rows].
ggml_tensor* build_embedding(const BlockContext& block, ggml_tensor* tokens);

// Output norm and head: [n_embd, n_rows] -> logits [rows of the head's matrix, n_rows].
ggml_tensor* build_head(const BlockContext& block, const HeadTensors& head, ggml_tensor* stream);

}  // namespace knap
