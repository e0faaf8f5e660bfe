#include "cuda/cuda_kv_store.h"

#include <algorithm>

#include "knap/types.h"

#include "base/error.h"
#include "kernels/cuda/cache_pages.h"

namespace knap {
namespace {

// Rows from `row` to the end of its page.
int rows_left(int row) {
    return kCudaPageRows - row % kCudaPageRows;
}

// Makes the device current before the members after it take memory there.
CudaDevice used(const CudaDevice& device) {
    use_device(device);
    return device;
}

std::size_t store_bytes(const ModelConfig& config, const LayerRange& layers, int n_pages) {
    return 2 * static_cast<std::size_t>(layers.n_layers()) * static_cast<std::size_t>(n_pages) *
           kCudaPageRows * static_cast<std::size_t>(config.n_embd_kv()) * sizeof(std::uint16_t);
}

}  // namespace

CudaKvStore::CudaKvStore(const ModelConfig& config,
                         const LayerRange& layers,
                         const CudaDevice& device,
                         const PageShape& pages)
    : layers_(layers),
      device_(used(device)),
      n_pages_(pages.n_pages),
      n_kv_heads_(static_cast<std::size_t>(config.n_kv_heads)),
      row_bytes_(static_cast<std::size_t>(config.head_dim) * sizeof(std::uint16_t)),
      memory_(store_bytes(config, layers, pages.n_pages), "the cache") {
    KNAP_ASSERT(pages.page_rows == kCudaPageRows, "pages are as this device asked for");
}

std::size_t CudaKvStore::head_pitch() const {
    return kCudaPageRows * row_bytes_;
}

std::size_t CudaKvStore::half_bytes() const {
    return static_cast<std::size_t>(n_pages_) * n_kv_heads_ * head_pitch();
}

std::byte* CudaKvStore::half(int layer, bool is_values) const {
    KNAP_ASSERT(layers_.has(layer), "a layer of this store");
    const auto index = static_cast<std::size_t>(2 * (layer - layers_.begin) + (is_values ? 1 : 0));
    return memory_.data() + index * half_bytes();
}

std::uint16_t* CudaKvStore::keys(int layer) const {
    return reinterpret_cast<std::uint16_t*>(half(layer, false));
}

std::uint16_t* CudaKvStore::values(int layer) const {
    return reinterpret_cast<std::uint16_t*>(half(layer, true));
}

std::size_t CudaKvStore::offset(int row) const {
    const auto page = static_cast<std::size_t>(row / kCudaPageRows);
    const auto in_page = static_cast<std::size_t>(row % kCudaPageRows);
    return page * n_kv_heads_ * head_pitch() + in_page * row_bytes_;
}

// One copy for all layers, for each stretch of rows within a page on both sides.
void CudaKvStore::copy_rows(int from, int to, int n_rows) {
    use_device(device_);
    for (int n_copied = 0; n_copied < n_rows;) {
        const int n =
            std::min({n_rows - n_copied, rows_left(from + n_copied), rows_left(to + n_copied)});
        stream_.copy_planes({.to = memory_.data() + offset(to + n_copied),
                             .from = memory_.data() + offset(from + n_copied),
                             .pitch = head_pitch(),
                             .width = static_cast<std::size_t>(n) * row_bytes_,
                             .n_rows = n_kv_heads_,
                             .plane_rows = static_cast<std::size_t>(n_pages_) * n_kv_heads_,
                             .n_planes = 2 * static_cast<std::size_t>(layers_.n_layers())});
        n_copied += n;
    }
    stream_.wait();
}

std::size_t CudaKvStore::saved_row_bytes() const {
    return 2 * n_kv_heads_ * row_bytes_;
}

std::uint64_t CudaKvStore::saved_format() const {
    constexpr auto kType = static_cast<std::uint64_t>(CacheType::f16);
    return kType | kType << 8;
}

// Calls visit(in the store, in the saved bytes, bytes from one head to the next there, bytes of a
// head) for every stretch of rows within a page: rows of all heads.
template <typename Visit>
void CudaKvStore::for_each_piece(int layer, std::span<const StoredRows> rows, Visit visit) const {
    std::size_t saved = 0;
    for (const StoredRows& range : rows) {
        const std::size_t saved_pitch = static_cast<std::size_t>(range.n_rows) * row_bytes_;
        for (const bool is_values : {false, true}) {
            for (int i = 0; i < range.n_rows;) {
                const int n = std::min(range.n_rows - i, rows_left(range.first + i));
                visit(half(layer, is_values) + offset(range.first + i),
                      saved + static_cast<std::size_t>(i) * row_bytes_, saved_pitch,
                      static_cast<std::size_t>(n) * row_bytes_);
                i += n;
            }
            saved += n_kv_heads_ * saved_pitch;
        }
    }
}

void CudaKvStore::export_rows(int layer, std::span<const StoredRows> rows, std::byte* out) const {
    use_device(device_);
    for_each_piece(
        layer, rows,
        [&](const std::byte* stored, std::size_t saved, std::size_t pitch, std::size_t width) {
            stream_.copy_rows(out + saved, pitch, stored, head_pitch(), width, n_kv_heads_);
        });
    stream_.wait();
}

void CudaKvStore::import_rows(int layer, std::span<const StoredRows> rows, const std::byte* in) {
    use_device(device_);
    for_each_piece(layer, rows,
                   [&](std::byte* stored, std::size_t saved, std::size_t pitch, std::size_t width) {
                       stream_.copy_rows(stored, head_pitch(), in + saved, pitch, width,
                                         n_kv_heads_);
                   });
    stream_.wait();
}

}  // namespace knap
