// Keys and values in ggml tensors, on any device.
//
// Only this file, graph/attention and graph/kernel_heads know how a row is laid out in memory: see
// KvLayout. The rows of a KV head are stored together, those of a page or of a chunk, because
// attention processes one head at a time. Keys are stored after RoPE. Memory that was never written
// is zero, so masked rows never contain NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

#include "device/layer_map.h"
#include "graph/cache/row_format.h"
#include "kv/kv_memory.h"
#include "model/cache_type.h"
#include "model/config.h"

namespace knap {

class HostImages;
class RowCopier;
class ZeroedBuffer;

// Per KV head, in ggml's order (first dimension contiguous):
enum class KvLayout {
    rows,               // keys and values [head_dim, page_rows]: ggml's flash attention
    transposed_values,  // values [page_rows, head_dim]: ggml's matrix products
    // For our kernel: one chunk of rows of every layer after another; head_dim is a multiple of 16,
    // and a page is a whole number of chunks:
    tiled_keys,  // f16: keys [16, head_dim, rows / 16], values as rows
    tiled_int8,  // q8_0: integers, one scale per row: see kernels/attention/attention.h
};

// True if only our kernels write and read the rows.
constexpr bool is_tiled(KvLayout layout) {
    return layout == KvLayout::tiled_keys || layout == KvLayout::tiled_int8;
}

// The form of the rows, and how many there are.
struct KvStoreShape {
    CacheTypes types{};
    KvLayout layout = KvLayout::transposed_values;
    PageShape pages{};
};

// Bytes of one row of keys and one of values, in one layer.
std::size_t kv_row_bytes(const ModelConfig& config, const CacheTypes& types, KvLayout layout);

// The destinations of the rows of a pass: graph inputs, filled by GgmlKvStore::fill_slots.
struct KvSlots {
    // Tiled layouts: i32 [n_rows], the stored row of every row; -1: none, it is padding
    ggml_tensor* rows = nullptr;
    // Other layouts: i64, one per contiguous piece of a row, n_kv_heads or n_embd_kv of them
    ggml_tensor* keys = nullptr;
    ggml_tensor* values = nullptr;
};

struct KvTensors {
    ggml_tensor* keys;
    ggml_tensor* values;
    // tiled_int8: f16 [1, rows of a block, n_kv_heads, n_blocks]; else null
    ggml_tensor* key_scales = nullptr;
    ggml_tensor* value_scales = nullptr;
};

// The address of row `row` of a head in a tensor with a tiled layout, or of the tile that begins
// with this row: a tile takes the space of its rows.
template <typename Number>
Number* cached_row(const ggml_tensor* tensor, int head, std::int64_t row) {
    const std::int64_t block = row / tensor->ne[1];
    return reinterpret_cast<Number*>(
        static_cast<std::byte*>(tensor->data) + static_cast<std::size_t>(block) * tensor->nb[3] +
        static_cast<std::size_t>(head) * tensor->nb[2] +
        static_cast<std::size_t>(row - block * tensor->ne[1]) * tensor->nb[1]);
}

class GgmlKvStore final : public KvStore {
  public:
    // The layers of `share`. Throws knap::Error when the types do not fit the model or memory is
    // short.
    GgmlKvStore(const ModelConfig& config, const LayerShare& share, const KvStoreShape& shape);
    ~GgmlKvStore() override;
    GgmlKvStore(const GgmlKvStore&) = delete;
    GgmlKvStore& operator=(const GgmlKvStore&) = delete;

    const LayerShare& share() const { return share_; }
    Backend& backend() const { return *share_.backend; }
    KvLayout layout() const { return shape_.layout; }
    int page_rows() const { return shape_.pages.page_rows; }

    LayerRange layers() const override { return {share_.first_layer, share_.end_layer}; }
    std::size_t bytes() const override;
    void copy_rows(int from, int to, int n_rows) override;
    bool copies_beside_passes() const override;
    std::size_t saved_row_bytes() const override { return row_bytes_; }
    std::uint64_t saved_format() const override;
    void export_rows(int layer, std::span<const StoredRows> rows, std::byte* out) const override;
    void import_rows(int layer, std::span<const StoredRows> rows, const std::byte* in) override;

    // On a device other than the host: copies the first `n_rows` rows of a page to its row `at` and
    // following, for graphs that read them there. The copy stays valid until it or its original is
    // overwritten.
    void repeat_first_rows(PageId page, int n_rows, int at);
    // Announces that a graph will write rows [first, first + n_rows) of a page.
    void expect_write(PageId page, int first, int n_rows);

    // --- for graphs; layers are numbered as in the model ---
    KvSlots new_slots(ggml_context* inputs, int max_rows) const;
    // The slots of `n_rows` rows, starting at row `first` of the pass.
    KvSlots view_slots(ggml_context* ctx, const KvSlots& slots, int n_rows, int first = 0) const;
    // Fills the slots of the rows that are stored at `rows`, for layouts that are not tiled.
    void fill_slots(std::span<std::int64_t> keys,
                    std::span<std::int64_t> values,
                    std::span<const std::int32_t> rows) const;
    // Adds the writes of `keys` and `values`, both f32 [n_embd_kv, n_rows], to `graph`. Tiled
    // layouts are written by graph/kernel_heads instead. Nodes that read the cache must be added
    // after these: only the order of nodes makes them depend on the write.
    void write(ggml_context* ctx,
               ggml_cgraph* graph,
               int layer,
               ggml_tensor* keys,
               ggml_tensor* values,
               const KvSlots& slots) const;
    // The first `n_rows` rows of a page: [head_dim, n_rows, n_kv_heads] in row layout, [n_rows,
    // head_dim, n_kv_heads] if transposed. Tiled layouts have no such view.
    ggml_tensor* keys(ggml_context* ctx, int layer, PageId page, int n_rows) const;
    ggml_tensor* values(ggml_context* ctx, int layer, PageId page, int n_rows) const;
    // All rows of a layer, in its KvLayout.
    KvTensors tensors(int layer) const;

  private:
    // Keys and values of a layer: each in one tensor, or with its scales in a second.
    using Half = std::vector<RowFormat>;
    struct Layer {
        Half keys;
        Half values;
    };
    const Layer& stored(int layer) const;
    void check_types() const;
    Layer new_layer() const;
    RowFormat new_rows(ggml_type type) const;
    RowFormat new_transposed(ggml_type type) const;
    RowFormat new_tiled(ggml_type type, int width, int unit, int tile) const;
    std::unique_ptr<ZeroedBuffer> place_in_blocks() const;
    int total_rows() const { return shape_.pages.page_rows * shape_.pages.n_pages; }
    template <typename Visit>
    void for_each_piece(int layer, std::span<const StoredRows> rows, Visit visit) const;
    void copy_rows_on_host(int from, int to, int n_rows) const;
    HostImages images(int layer) const;
    RowCopier& copier(int n_rows);

    // A copy of the first rows of a page.
    struct Repeat {
        int n_rows = 0;
        int at = 0;
        bool operator==(const Repeat&) const = default;
    };

    LayerShare share_;
    KvStoreShape shape_;
    int head_dim_ = 0;
    int n_kv_heads_ = 0;
    std::size_t row_bytes_ = 0;
    ggml_context_ptr context_;
    std::unique_ptr<ZeroedBuffer> buffer_;
    std::vector<Layer> layers_;                        // from the share's first on
    std::vector<std::unique_ptr<RowCopier>> copiers_;  // on a device; made when first needed
    std::vector<Repeat> repeats_;                      // of each page; of no rows: none
};

}  // namespace knap
