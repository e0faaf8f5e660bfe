// What a pass is asked for, on its way to the device: arrays are put one after the other into host
// memory, then go over in one copy.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/cuda/device_memory.h"

namespace knap {

class PassArena {
  public:
    void clear() { n_bytes_ = 0; }

    // Where the array will be on the device, as an offset.
    template <typename T>
    std::size_t put(std::span<const T> array) {
        constexpr std::size_t kAlignment = 128;
        const std::size_t at = (n_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
        n_bytes_ = at + array.size_bytes();
        if (bytes_.size() < n_bytes_) {
            bytes_.resize(std::max(n_bytes_, 2 * bytes_.size()));
        }
        if (!array.empty()) {
            std::memcpy(bytes_.data() + at, array.data(), array.size_bytes());
        }
        return at;
    }

    std::size_t bytes_used() const { return n_bytes_; }

    // Copies all arrays to the device.
    void upload(CudaStream& stream) {
        if (on_device_.bytes() < n_bytes_) {
            stream.wait();
            on_device_ = CudaMemory(2 * n_bytes_, "what passes are asked for");
            pinned_ = PinnedMemory(2 * n_bytes_);
        }
        std::memcpy(pinned_.data(), bytes_.data(), n_bytes_);
        stream.upload(on_device_.data(), pinned_.data(), n_bytes_);
    }

    // An array, once it is on the device.
    template <typename T>
    const T* at(std::size_t offset) const {
        return reinterpret_cast<const T*>(on_device_.data() + offset);
    }

    std::size_t bytes() const { return on_device_.bytes(); }

  private:
    std::size_t n_bytes_ = 0;
    std::vector<std::byte> bytes_;
    PinnedMemory pinned_;
    CudaMemory on_device_;
};

}  // namespace knap
