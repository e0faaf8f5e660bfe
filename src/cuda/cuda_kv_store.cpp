#include "cuda/cuda_kv_store.h"

#include <algorithm>
#include <cstring>

#include "knap/types.h"

#include "base/error.h"
#include "kernels/cuda/cache_pages.h"

namespace knap {
namespace {

constexpr std::size_t kScaleBytes = 2;
constexpr std::size_t kBlockBytes = kScaleBytes + kCacheBlock;  // of a file

// Rows from `row` to the end of its page.
int rows_left(int row) {
    return kCudaPageRows - row % kCudaPageRows;
}

// Makes the device current before the members after it take memory there.
CudaDevice used(const CudaDevice& device) {
    use_device(device);
    return device;
}

// Rows whose codes and scales are apart, as a file has them, or the other way round. A file has
// blocks: a scale and 32 codes.
template <typename Copy>
void for_each_block(std::size_t n_rows, std::size_t head_dim, Copy copy) {
    const std::size_t n_blocks = head_dim / kCacheBlock;
    const auto n_places = static_cast<std::size_t>(scale_places(static_cast<int>(head_dim)));
    for (std::size_t row = 0; row < n_rows; ++row) {
        for (std::size_t i = 0; i < n_blocks; ++i) {
            copy((row * n_blocks + i) * kBlockBytes, (row * n_places + i) * kScaleBytes,
                 row * head_dim + i * kCacheBlock);
        }
    }
}

}  // namespace

// Rows of all heads within a page.
struct CudaKvStore::Piece {
    int layer;
    int first;
    int n_rows;
    std::size_t saved;        // where they are saved
    std::size_t saved_pitch;  // from one head to the next there
};

CudaKvStore::CudaKvStore(const ModelConfig& config,
                         const LayerRange& layers,
                         const CudaDevice& device,
                         const CacheTypes& types,
                         const PageShape& pages)
    : layers_(layers),
      device_(used(device)),
      types_(types),
      n_pages_(pages.n_pages),
      n_kv_heads_(static_cast<std::size_t>(config.n_kv_heads)),
      head_dim_(static_cast<std::size_t>(config.head_dim)),
      halves_{new_half(types.keys), new_half(types.values)} {
    KNAP_ASSERT(pages.page_rows == kCudaPageRows, "pages are as this device asked for");
    std::size_t n_bytes = 0;
    for (Part* part :
         {&halves_[0].numbers, &halves_[1].numbers, &halves_[0].scales, &halves_[1].scales}) {
        part->first = n_bytes;
        n_bytes += static_cast<std::size_t>(layers.n_layers()) * layer_rows() * part->row_bytes;
    }
    memory_ = CudaMemory(n_bytes, "the cache");
}

CudaKvStore::Half CudaKvStore::new_half(CacheType type) const {
    KNAP_ASSERT(type != CacheType::f32, "whoever chooses our kernels has checked the cache types");
    if (type == CacheType::f16) {
        return {.type = type, .numbers = {.row_bytes = 2 * head_dim_}};
    }
    const auto n_places = static_cast<std::size_t>(scale_places(static_cast<int>(head_dim_)));
    return {.type = type,
            .numbers = {.row_bytes = head_dim_},
            .scales = {.row_bytes = n_places * kScaleBytes}};
}

std::size_t CudaKvStore::layer_rows() const {
    return static_cast<std::size_t>(n_pages_) * n_kv_heads_ * kCudaPageRows;
}

std::byte* CudaKvStore::at(const Part& part, int layer, int row) const {
    KNAP_ASSERT(layers_.has(layer), "a layer of this store");
    const auto page = static_cast<std::size_t>(row / kCudaPageRows);
    const std::size_t place = static_cast<std::size_t>(layer - layers_.begin) * layer_rows() +
                              page * n_kv_heads_ * kCudaPageRows +
                              static_cast<std::size_t>(row % kCudaPageRows);
    return memory_.data() + part.first + place * part.row_bytes;
}

void CudaKvStore::place(int layer, CudaLayer& in) const {
    const auto scales = [&](const Half& half) {
        return half.scales.row_bytes == 0
                   ? nullptr
                   : reinterpret_cast<std::uint16_t*>(at(half.scales, layer, 0));
    };
    in.keys = reinterpret_cast<std::uint8_t*>(at(halves_[0].numbers, layer, 0));
    in.values = reinterpret_cast<std::uint8_t*>(at(halves_[1].numbers, layer, 0));
    in.key_scales = scales(halves_[0]);
    in.value_scales = scales(halves_[1]);
}

// One copy for all layers of a part, for each stretch of rows within a page on both sides.
void CudaKvStore::copy_rows(int from, int to, int n_rows) {
    use_device(device_);
    for (int n_copied = 0; n_copied < n_rows;) {
        const int n =
            std::min({n_rows - n_copied, rows_left(from + n_copied), rows_left(to + n_copied)});
        for (const Half& half : halves_) {
            for (const Part& part : {half.numbers, half.scales}) {
                if (part.row_bytes == 0) {
                    continue;
                }
                stream_.copy_planes({.to = at(part, layers_.begin, to + n_copied),
                                     .from = at(part, layers_.begin, from + n_copied),
                                     .pitch = kCudaPageRows * part.row_bytes,
                                     .width = static_cast<std::size_t>(n) * part.row_bytes,
                                     .n_rows = n_kv_heads_,
                                     .plane_rows = layer_rows() / kCudaPageRows,
                                     .n_planes = static_cast<std::size_t>(layers_.n_layers())});
            }
        }
        n_copied += n;
    }
    stream_.wait();
}

std::size_t CudaKvStore::saved_bytes(const Half& half) const {
    return half.type == CacheType::f16 ? 2 * head_dim_ : head_dim_ / kCacheBlock * kBlockBytes;
}

std::size_t CudaKvStore::saved_row_bytes() const {
    return n_kv_heads_ * (saved_bytes(halves_[0]) + saved_bytes(halves_[1]));
}

std::uint64_t CudaKvStore::saved_format() const {
    return static_cast<std::uint64_t>(types_.keys) | static_cast<std::uint64_t>(types_.values) << 8;
}

// Calls visit(half, piece) for every stretch of rows within a page, in the order in which they are
// saved.
template <typename Visit>
void CudaKvStore::for_each_piece(int layer, std::span<const StoredRows> rows, Visit visit) const {
    std::size_t saved = 0;
    for (const StoredRows& range : rows) {
        for (const Half& half : halves_) {
            const std::size_t pitch = static_cast<std::size_t>(range.n_rows) * saved_bytes(half);
            for (int i = 0; i < range.n_rows;) {
                const int n = std::min(range.n_rows - i, rows_left(range.first + i));
                visit(half, Piece{.layer = layer,
                                  .first = range.first + i,
                                  .n_rows = n,
                                  .saved = saved + static_cast<std::size_t>(i) * saved_bytes(half),
                                  .saved_pitch = pitch});
                i += n;
            }
            saved += n_kv_heads_ * pitch;
        }
    }
}

// Rows of a part to the host, those of a head `pitch` bytes after those of the one before.
void CudaKvStore::fetch(const Part& part,
                        const Piece& piece,
                        std::byte* to,
                        std::size_t pitch) const {
    stream_.copy_rows(to, pitch, at(part, piece.layer, piece.first), kCudaPageRows * part.row_bytes,
                      static_cast<std::size_t>(piece.n_rows) * part.row_bytes, n_kv_heads_);
}

void CudaKvStore::send(const Part& part,
                       const Piece& piece,
                       const std::byte* from,
                       std::size_t pitch) const {
    stream_.copy_rows(at(part, piece.layer, piece.first), kCudaPageRows * part.row_bytes, from,
                      pitch, static_cast<std::size_t>(piece.n_rows) * part.row_bytes, n_kv_heads_);
}

// Room for the codes and scales of a piece, from one head to the next.
CudaKvStore::Pitches CudaKvStore::reserve(const Half& half, const Piece& piece) const {
    const auto n = static_cast<std::size_t>(piece.n_rows);
    const Pitches pitches{.codes = n * half.numbers.row_bytes, .scales = n * half.scales.row_bytes};
    codes_.assign(n_kv_heads_ * pitches.codes, {});
    scales_.assign(n_kv_heads_ * pitches.scales, {});
    return pitches;
}

// Calls copy(where it is saved, scale, codes) for every block of a piece.
template <typename Copy>
void CudaKvStore::for_each_saved_block(const Piece& piece,
                                       const Pitches& pitches,
                                       Copy copy) const {
    for (std::size_t head = 0; head < n_kv_heads_; ++head) {
        const std::size_t saved = piece.saved + head * piece.saved_pitch;
        std::byte* codes = codes_.data() + head * pitches.codes;
        std::byte* scales = scales_.data() + head * pitches.scales;
        for_each_block(static_cast<std::size_t>(piece.n_rows), head_dim_,
                       [&](std::size_t block, std::size_t scale, std::size_t code) {
                           copy(saved + block, scales + scale, codes + code);
                       });
    }
}

void CudaKvStore::export_rows(int layer, std::span<const StoredRows> rows, std::byte* out) const {
    use_device(device_);
    for_each_piece(layer, rows, [&](const Half& half, const Piece& piece) {
        if (half.type == CacheType::f16) {
            fetch(half.numbers, piece, out + piece.saved, piece.saved_pitch);
            return;
        }
        const Pitches pitches = reserve(half, piece);
        fetch(half.numbers, piece, codes_.data(), pitches.codes);
        fetch(half.scales, piece, scales_.data(), pitches.scales);
        stream_.wait();
        for_each_saved_block(piece, pitches,
                             [&](std::size_t at, const std::byte* scale, const std::byte* codes) {
                                 std::memcpy(out + at, scale, kScaleBytes);
                                 std::memcpy(out + at + kScaleBytes, codes, kCacheBlock);
                             });
    });
    stream_.wait();
}

void CudaKvStore::import_rows(int layer, std::span<const StoredRows> rows, const std::byte* in) {
    use_device(device_);
    for_each_piece(layer, rows, [&](const Half& half, const Piece& piece) {
        if (half.type == CacheType::f16) {
            send(half.numbers, piece, in + piece.saved, piece.saved_pitch);
            return;
        }
        stream_.wait();  // for the rows before
        const Pitches pitches = reserve(half, piece);
        for_each_saved_block(piece, pitches,
                             [&](std::size_t at, std::byte* scale, std::byte* codes) {
                                 std::memcpy(scale, in + at, kScaleBytes);
                                 std::memcpy(codes, in + at + kScaleBytes, kCacheBlock);
                             });
        send(half.numbers, piece, codes_.data(), pitches.codes);
        send(half.scales, piece, scales_.data(), pitches.scales);
    });
    stream_.wait();
}

}  // namespace knap
