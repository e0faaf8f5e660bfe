// The heads of single rows on their way to our attention kernel: queries and keys are rotated, keys
// and values written to a cache with a tiled layout.
#pragma once

#include "graph/cache/ggml_kv_store.h"
#include "model/config.h"

namespace knap {

class HeadRows {
  public:
    // `cached` are the rows of a layer. Both must outlive the object.
    HeadRows(const ModelConfig& config, const KvTensors& cached)
        : config_(config), cached_(cached) {}

    // `turns` [n_rot] are the rotations of the row's pairs (graph/rotation.h); x and out
    // [head_dim].
    void rotate(const float* turns, const float* x, float* out) const;
    // Stores a head of keys, before rotation, and one of values, in row `stored` of the cache.
    void store_key(int head, int stored, const float* turns, const float* key) const;
    void store_value(int head, int stored, const float* value) const;

  private:
    bool is_int8() const { return cached_.key_scales != nullptr; }

    const ModelConfig& config_;
    const KvTensors& cached_;
};

}  // namespace knap
