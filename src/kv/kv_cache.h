// Keys and values of every layer for one sequence of rows. Rows below committed() are final; rows above it are
// scratch that the next pass may overwrite. Rejecting work is truncate(n): nothing is copied or cleared.
//
// How a row lies in memory is known here and to the attention operator (graph/attention) alone: keys are rows
// [n_embd_kv] after RoPE; values are transposed ([capacity] per channel) for the folded CPU attention, rows for
// flash attention. Memory that was never written is zero, so masked rows never hold NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ggml-cpp.h"
#include "knap/types.h"
#include "model/config.h"

namespace knap {

class Backend;
class ZeroedBuffer;

struct KvCacheOptions {
    int capacity = 0; // rows: the context plus the scratch that a round needs
    CacheType type_k = CacheType::f16;
    CacheType type_v = CacheType::f16;
    bool transposed_values = true; // false for flash attention
};

// Where the rows of a pass go: inputs of a graph, filled by KvCache::set_slots.
struct KvSlots {
    ggml_tensor* keys = nullptr;   // i64 [n_rows]
    ggml_tensor* values = nullptr; // i64 [n_rows], or [n_rows * n_embd_kv] when values are transposed
};

class KvCache {
  public:
    // Throws knap::Error when the types do not fit the model or memory is short.
    KvCache(const ModelConfig& config, const Backend& backend, const KvCacheOptions& options);
    ~KvCache();

    int capacity() const { return options_.capacity; }
    int committed() const { return committed_; }
    void commit(int n_rows);   // rows [0, n_rows) are final; never below committed()
    void truncate(int n_rows); // rows from n_rows on are scratch again
    const KvCacheOptions& options() const { return options_; }

    std::size_t bytes() const; // reserved
    // Bytes that attention over `n_rows` rows reads, all layers.
    std::size_t bytes_per_row() const;

    // --- for graphs ---
    KvSlots new_slots(ggml_context* inputs, int max_rows) const;
    KvSlots view_slots(ggml_context* ctx, const KvSlots& slots, int n_rows) const;
    // Rows first_row, first_row + 1, ... of the cache.
    void set_slots(const KvSlots& slots, int first_row, int n_rows) const;
    // Adds to `graph` the writes of `keys` and `values`, both f32 [n_embd_kv, n_rows]. What reads the cache after
    // them must be added to the graph later: only node order ties it to the write.
    void write(ggml_context* ctx, ggml_cgraph* graph, int layer, ggml_tensor* keys, ggml_tensor* values,
               const KvSlots& slots) const;
    ggml_tensor* keys(ggml_context* ctx, int layer, int n_rows) const; // [head_dim, n_rows, n_kv_heads]
    // [n_rows, head_dim, n_kv_heads] when transposed, else [head_dim, n_rows, n_kv_heads]
    ggml_tensor* values(ggml_context* ctx, int layer, int n_rows) const;

    // --- for saving: the first rows of a layer, as they lie in memory, without the gaps between them ---
    std::size_t saved_row_bytes() const; // of one layer: a row of keys and one of values
    void read_rows(int layer, int n_rows, std::byte* out) const;
    void write_rows(int layer, int n_rows, const std::byte* in);

  private:
    template <typename Visit>
    void for_each_piece(int layer, int n_rows, Visit visit) const;
    ggml_tensor* layer_keys(int layer) const { return keys_[static_cast<std::size_t>(layer)]; }
    ggml_tensor* layer_values(int layer) const { return values_[static_cast<std::size_t>(layer)]; }

    KvCacheOptions options_;
    int head_dim_ = 0;
    int n_kv_heads_ = 0;
    int committed_ = 0;
    ggml_context_ptr context_;
    std::unique_ptr<ZeroedBuffer> buffer_;
    std::vector<ggml_tensor*> keys_;   // per layer [n_embd_kv, capacity]
    std::vector<ggml_tensor*> values_; // per layer [capacity, n_embd_kv] transposed, else [n_embd_kv, capacity]
};

} // namespace knap
