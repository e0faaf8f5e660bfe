// How a device computes attention, and what it promises.
#pragma once

#include <string_view>

#include "knap/types.h"

#include "forward/stage.h"
#include "graph/cache/ggml_kv_store.h"
#include "model/config.h"

namespace knap {

enum class AttentionPath {
    kernel,  // our own kernel; later paths promise less
    folded,  // ggml's matrix products, the query heads of one KV head as columns of one product
    // ggml's flash attention: batch-invariant only on devices other than the host, and only if
    // AttentionPolicy::exact_rows requests it
    flash,
};
std::string_view to_string(AttentionPath path);  // "kernel", "folded", "flash"

struct AttentionPolicy {
    AttentionPath path = AttentionPath::folded;
    // For flash attention on a device other than the host: passes of up to this many rows are
    // bit-identical to single-row passes; 0: none are, which is faster (BlockRules::exact_rows).
    int exact_rows = 0;
};

// The policy for a model on this device. On the host: flash if requested, otherwise our kernel if
// it fits and `kernels` allows it. On other devices: flash if supported, unless it is disabled;
// products with the weights are bit-identical to single-row passes for up to `exact_rows` rows.
AttentionPolicy choose_attention(const ModelConfig& config,
                                 const RuntimeConfig& runtime,
                                 const Backend& backend,
                                 int exact_rows = 1);
// The cache layout that a path reads, for keys of `type`.
KvLayout layout_for(AttentionPath path, CacheType type);
AttentionPath path_for(KvLayout layout);

// What attention promises on this device.
DeviceLimits attention_limits(const AttentionPolicy& policy, const Backend& backend);

}  // namespace knap
