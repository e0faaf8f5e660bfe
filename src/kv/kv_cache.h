// Keys and values of every layer for one sequence of rows. Rows below committed() are final; rows
// above it are scratch that the next pass may overwrite. Rejecting work is truncate(n): nothing is
// copied or cleared.
//
// How a row lies in memory is known here and to the attention operator (graph/attention) alone: see
// KvLayout. Every KV head has its rows together, because attention walks through one head at a
// time. Keys are stored after RoPE. Memory that was never written is zero, so masked rows never
// hold NaN.
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

// Per KV head, in ggml's order (first dimension contiguous):
enum class KvLayout {
    rows,               // keys and values [head_dim, capacity]: ggml's flash attention
    transposed_values,  // values [capacity, head_dim]: ggml's matrix products
    tiled_keys,  // keys [16, head_dim, capacity / 16]: our kernel; f16, head_dim and capacity
                 // multiples of 16 and 64
};

struct KvCacheOptions {
    int capacity = 0;  // rows: the context plus the scratch that a round needs
    CacheType type_k = CacheType::f16;
    CacheType type_v = CacheType::f16;
    KvLayout layout = KvLayout::transposed_values;
};

// Bytes of one row of keys and one of values, in one layer.
std::size_t kv_row_bytes(const ModelConfig& config, CacheType type_k, CacheType type_v);

// Where the rows of a pass go: inputs of a graph, filled by KvCache::set_slots.
struct KvSlots {
    // i64: one per contiguous run of a row, n_kv_heads or n_embd_kv of them
    ggml_tensor* keys = nullptr;
    ggml_tensor* values = nullptr;
};

class KvCache {
  public:
    // Throws knap::Error when the types do not fit the model or memory is short.
    KvCache(const ModelConfig& config, const Backend& backend, const KvCacheOptions& options);
    ~KvCache();

    int capacity() const { return options_.capacity; }
    int committed() const { return committed_; }
    void commit(int n_rows);    // rows [0, n_rows) are final; never below committed()
    void truncate(int n_rows);  // rows from n_rows on are scratch again
    // Copies row `from` over row `to` in every layer; `to` is scratch.
    void copy_row(int from, int to);
    const KvCacheOptions& options() const { return options_; }

    std::size_t bytes() const;  // reserved
    // Bytes that attention over `n_rows` rows reads, all layers.
    std::size_t bytes_per_row() const;

    // --- for graphs ---
    KvSlots new_slots(ggml_context* inputs, int max_rows) const;
    KvSlots view_slots(ggml_context* ctx, const KvSlots& slots, int n_rows) const;
    // Rows first_row, first_row + 1, ... of the cache.
    void set_slots(const KvSlots& slots, int first_row, int n_rows) const;
    // Adds to `graph` the writes of `keys` and `values`, both f32 [n_embd_kv, n_rows]. What reads
    // the cache after them must be added to the graph later: only node order ties it to the write.
    void write(ggml_context* ctx,
               ggml_cgraph* graph,
               int layer,
               ggml_tensor* keys,
               ggml_tensor* values,
               const KvSlots& slots) const;
    // The first `n_rows` rows: [head_dim, n_rows, n_kv_heads] where they lie as rows, [n_rows,
    // head_dim, n_kv_heads] where they are transposed, and all of the tensor where they are tiled.
    ggml_tensor* keys(ggml_context* ctx, int layer, int n_rows) const;
    ggml_tensor* values(ggml_context* ctx, int layer, int n_rows) const;

    // --- for saving: the first rows of a layer, head by head, keys then values, whatever the
    // layout ---
    std::size_t saved_row_bytes() const;  // of one layer: a row of keys and one of values
    void read_rows(int layer, int n_rows, std::byte* out) const;
    void write_rows(int layer, int n_rows, const std::byte* in);

  private:
    // How a head's channels of one row are spread: in one run, or each channel by itself.
    enum class Spread { run, transposed, tiled };
    struct Half {
        ggml_tensor* tensor;
        Spread spread;
    };
    Half key_half(int layer) const;
    Half value_half(int layer) const;
    std::int64_t runs_per_row(Spread spread) const;
    std::int64_t run_index(Spread spread, std::int64_t run, int row) const;
    std::byte* run_data(const Half& half, std::int64_t run, int row) const;
    std::size_t run_bytes(const Half& half) const;
    ggml_tensor* view(ggml_context* ctx, const Half& half, int n_rows) const;
    template <typename Visit>
    void for_each_piece(int layer, int n_rows, Visit visit) const;

    KvCacheOptions options_;
    int head_dim_ = 0;
    int n_kv_heads_ = 0;
    std::size_t row_bytes_ = 0;
    int committed_ = 0;
    ggml_context_ptr context_;
    std::unique_ptr<ZeroedBuffer> buffer_;
    // Per layer [head_dim, capacity, n_kv_heads]; tiled: the same memory, other order
    std::vector<ggml_tensor*> keys_;
    // Per layer [head_dim, capacity, n_kv_heads], or [capacity, head_dim, n_kv_heads]
    std::vector<ggml_tensor*> values_;
};

}  // namespace knap
