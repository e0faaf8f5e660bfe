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

    // Copies the arrays to the device, from the first that has changed since the last time on: most
    // passes have the phases of the one before.
    void upload(CudaStream& stream) {
        if (on_device_.bytes() < n_bytes_) {
            stream.wait();
            on_device_ = CudaMemory(2 * n_bytes_, "what passes are asked for");
            pinned_ = PinnedMemory(2 * n_bytes_);
            n_known_ = 0;
        }
        const std::size_t begin = count_same();
        n_known_ = n_bytes_;
        n_uploaded_ = n_bytes_ - begin;
        if (n_uploaded_ > 0) {
            std::memcpy(pinned_.data() + begin, bytes_.data() + begin, n_uploaded_);
            stream.upload(on_device_.data() + begin, pinned_.data() + begin, n_uploaded_);
        }
    }
    std::size_t n_uploaded() const { return n_uploaded_; }  // bytes, the last time

    // An array, once it is on the device.
    template <typename T>
    const T* at(std::size_t offset) const {
        return reinterpret_cast<const T*>(on_device_.data() + offset);
    }

    std::size_t bytes() const { return on_device_.bytes(); }

  private:
    // Leading bytes that the device has already, in whole blocks.
    std::size_t count_same() const {
        constexpr std::size_t kBlock = 1024;
        const std::size_t n = std::min(n_known_, n_bytes_);
        std::size_t at = 0;
        while (at + kBlock <= n &&
               std::memcmp(pinned_.data() + at, bytes_.data() + at, kBlock) == 0) {
            at += kBlock;
        }
        return at;
    }

    std::size_t n_bytes_ = 0;
    std::size_t n_known_ = 0;  // leading bytes of pinned memory that the device has
    std::size_t n_uploaded_ = 0;
    std::vector<std::byte> bytes_;
    PinnedMemory pinned_;
    CudaMemory on_device_;
};

}  // namespace knap
