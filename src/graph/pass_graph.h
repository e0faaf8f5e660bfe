// The nodes of one pass: rows are embedded or taken up where an earlier pass left them, go through
// the modules that the plan runs, are captured on the way, and end in the head.
#pragma once

#include "graph/forward_inputs.h"
#include "graph/graph_cache.h"
#include "graph/stream_bank.h"
#include "kv/kv_store.h"
#include "model/config.h"
#include "model/head_subset.h"
#include "model/weights.h"

namespace knap {

// Everything that graphs over the layers of one device share.
struct PassParts {
    const ModelConfig& config;
    const ModelTensors& tensors;
    const KvStore& cache;  // of these layers
    const ForwardInputs& inputs;
    const StreamBank* bank;  // null where there is none
    HeadTensors head{};      // of the passes with logits
};

// Adds the nodes of the pass that `key` describes to the empty `built.graph`.
void build_pass(const PassParts& parts, const GraphKey& key, BuiltGraph& built);

// Upper bound on the tensors of a graph of `n_layers` layers, views included, when the rows of a
// pass are cut into at most `n_blocks` blocks.
std::size_t max_pass_tensors(int n_layers, int n_blocks);

}  // namespace knap
