// Columns of an attention node meet a chunk of the context.
#pragma once

#include <span>

#include "graph/attention_node.h"

namespace knap {

// Partial results of columns [first, first + partials.size()) of a KV head, at most
// kMaxAttentionColumns, over one chunk. They depend on what each column sees in which order, not on
// where it lies nor on the columns beside it.
void run_chunk(
    const AttentionNode& in, int kv_head, int first, int chunk, std::span<float* const> partials);

}  // namespace knap
