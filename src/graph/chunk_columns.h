// Attention of some columns over one chunk of the context.
#pragma once

#include <span>

#include "graph/attention_node.h"

namespace knap {

// Computes the partial results of columns [first, first + partials.size()) of a KV head, at most
// kMaxAttentionColumns, over one chunk. They depend on what each column attends to and in which
// order, not on its index or on the other columns.
void run_chunk(
    const AttentionNode& in, int kv_head, int first, int chunk, std::span<float* const> partials);

}  // namespace knap
