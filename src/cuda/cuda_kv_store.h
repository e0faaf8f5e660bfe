// Keys and values in the memory of an NVIDIA GPU, in the layout of our kernels
// (kernels/cuda/cache_pages.h). Memory that was never written is zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device_memory.h"
#include "kv/kv_memory.h"
#include "model/config.h"

namespace knap {

class CudaKvStore final : public KvStore {
  public:
    // Pages of kCudaPageRows rows. Throws knap::Error when memory is short.
    CudaKvStore(const ModelConfig& config,
                const LayerRange& layers,
                const CudaDevice& device,
                const PageShape& pages);

    const CudaDevice& device() const { return device_; }
    int n_pages() const { return n_pages_; }
    // The first number of a layer, as the model numbers layers, on the device.
    std::uint16_t* keys(int layer) const;
    std::uint16_t* values(int layer) const;

    LayerRange layers() const override { return layers_; }
    std::size_t bytes() const override { return memory_.bytes(); }
    void copy_rows(int from, int to, int n_rows) override;
    bool copies_beside_passes() const override { return false; }
    std::size_t saved_row_bytes() const override;
    std::uint64_t saved_format() const override;
    void export_rows(int layer, std::span<const StoredRows> rows, std::byte* out) const override;
    void import_rows(int layer, std::span<const StoredRows> rows, const std::byte* in) override;

  private:
    std::size_t head_pitch() const;  // from one head of a page to the next
    std::size_t half_bytes() const;  // all keys of a layer, or all values
    std::byte* half(int layer, bool is_values) const;
    std::size_t offset(int row) const;  // of the row's first head in a half
    template <typename Visit>
    void for_each_piece(int layer, std::span<const StoredRows> rows, Visit visit) const;

    LayerRange layers_;
    CudaDevice device_;
    int n_pages_;
    std::size_t n_kv_heads_;
    std::size_t row_bytes_;  // of one head
    CudaMemory memory_;
    mutable CudaStream stream_;
};

}  // namespace knap
