// Keys and values in the memory of an NVIDIA GPU, in the layout of our kernels
// (kernels/cuda/cache_pages.h). Memory that was never written is zero.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/pass.h"
#include "kv/kv_memory.h"
#include "model/cache_type.h"
#include "model/config.h"

namespace knap {

class CudaKvStore final : public KvStore {
  public:
    // Pages of kCudaPageRows rows, each half f16 or q8_0. Throws knap::Error when memory is short.
    CudaKvStore(const ModelConfig& config,
                const LayerRange& layers,
                const CudaDevice& device,
                const CacheTypes& types,
                const PageShape& pages);

    const CudaDevice& device() const { return device_; }
    const CacheTypes& types() const { return types_; }
    int n_pages() const { return n_pages_; }
    // Where a layer, as the model numbers layers, has its keys and values, and their scales.
    void place(int layer, CudaLayer& in) const;

    LayerRange layers() const override { return layers_; }
    std::size_t bytes() const override { return memory_.bytes(); }
    void copy_rows(int from, int to, int n_rows) override;
    bool copies_beside_passes() const override { return false; }
    // Saved rows are as ggml has them: f16, or blocks of a scale and 32 codes.
    std::size_t saved_row_bytes() const override;
    std::uint64_t saved_format() const override;
    void export_rows(int layer, std::span<const StoredRows> rows, std::byte* out) const override;
    void import_rows(int layer, std::span<const StoredRows> rows, const std::byte* in) override;

  private:
    // [layer][page][KV head][row of the page], each of row_bytes.
    struct Part {
        std::size_t row_bytes = 0;  // 0: there is none
        std::size_t first = 0;      // where it begins
    };
    struct Half {  // keys or values
        CacheType type = CacheType::f16;
        Part numbers;
        Part scales;
    };
    struct Piece;
    struct Pitches {
        std::size_t codes = 0;
        std::size_t scales = 0;
    };

    Half new_half(CacheType type) const;
    std::size_t layer_rows() const;  // of all heads
    std::byte* at(const Part& part, int layer, int row) const;
    std::size_t saved_bytes(const Half& half) const;  // of a row of a head
    template <typename Visit>
    void for_each_piece(int layer, std::span<const StoredRows> rows, Visit visit) const;
    Pitches reserve(const Half& half, const Piece& piece) const;
    template <typename Copy>
    void for_each_saved_block(const Piece& piece, const Pitches& pitches, Copy copy) const;
    void fetch(const Part& part, const Piece& piece, std::byte* to, std::size_t pitch) const;
    void send(const Part& part, const Piece& piece, const std::byte* from, std::size_t pitch) const;

    LayerRange layers_;
    CudaDevice device_;
    CacheTypes types_;
    int n_pages_;
    std::size_t n_kv_heads_;
    std::size_t head_dim_;
    std::array<Half, 2> halves_;
    CudaMemory memory_;
    mutable CudaStream stream_;
    mutable std::vector<std::byte> codes_;  // of rows on their way, and their scales
    mutable std::vector<std::byte> scales_;
};

}  // namespace knap
