// Builds the nodes of one pass: embeds rows or resumes from an earlier pass, runs the modules of
// the plan, captures streams on the way, and ends with the head.
#pragma once

#include <deque>

#include "graph/cache/ggml_kv_store.h"
#include "graph/forward_inputs.h"
#include "graph/graph_cache.h"
#include "graph/stream_bank.h"
#include "model/config.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap {

// Shared by all graphs over the layers of one device.
struct PassParts {
    const ModelConfig& config;
    const ModelTensors& tensors;
    const GgmlKvStore& cache;  // of these layers
    const ForwardInputs& inputs;
    const std::deque<AttentionTasks>& tasks;  // of each group, for our kernel; else none
    const GgmlStreamBank* bank;               // null if there is none
    HeadTensors head{};                       // for passes with logits
};

// Adds the nodes of the pass that `key` describes to the empty `built.graph`.
void build_pass(const PassParts& parts, const GraphKey& key, BuiltGraph& built);

// An upper bound on the tensors of a graph of `n_layers` layers, views included, if the rows of a
// pass are split into at most `n_blocks` blocks.
std::size_t max_pass_tensors(const ModelConfig& config, int n_layers, int n_blocks);

}  // namespace knap
