// The experts of a layer as graph nodes: knap's operators for packed matrices, ggml's for others.
#pragma once

#include "ggml.h"

#include "graph/products.h"
#include "model/config.h"
#include "model/weights.h"

namespace knap {

// What the experts of a layer give for the rows of `x`, added up by rank: f32 [n_embd, n_rows].
// Rows use `n_allowed` experts; 0: as many as in the whole model. `config` and `weights` are of
// that layer's model and must outlive the graph.
ggml_tensor* build_experts(ggml_context* ctx,
                           const ModelConfig& config,
                           int layer,
                           const LayerWeights& weights,
                           int n_allowed,
                           ProductInput& x);

// An upper bound on the nodes and views that build_experts() makes in one layer.
int max_expert_tensors(const ModelConfig& config);

}  // namespace knap
