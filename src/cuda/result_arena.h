// What a pass gives, on its way to the host: arrays come over one after the other into pinned
// memory, and the host waits once.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cuda/device_memory.h"

namespace knap {

class ResultArena {
  public:
    void clear() {
        copies_.clear();
        n_bytes_ = 0;
    }

    // Where `n` values will be on the host, as an offset.
    template <typename T>
    std::size_t place(std::size_t n) {
        constexpr std::size_t kAlignment = 16;
        const std::size_t at = (n_bytes_ + kAlignment - 1) / kAlignment * kAlignment;
        n_bytes_ = at + n * sizeof(T);
        return at;
    }
    // Copies `n` values of the device to the place at `offset`, from its value `first` on.
    template <typename T>
    void copy(std::size_t offset, std::size_t first, const T* from, std::size_t n) {
        if (n > 0) {
            copies_.push_back({offset + first * sizeof(T), from, n * sizeof(T)});
        }
    }
    template <typename T>
    std::size_t take(const T* from, std::size_t n) {
        const std::size_t at = place<T>(n);
        copy(at, 0, from, n);
        return at;
    }

    // Waits until everything is there. Returns the number of bytes that came over.
    std::size_t fetch(CudaStream& stream) {
        if (pinned_.bytes() < n_bytes_) {
            pinned_ = PinnedMemory(n_bytes_);
        }
        std::size_t n_copied = 0;
        for (const Copy& copy : copies_) {
            stream.download(pinned_.data() + copy.offset, copy.from, copy.n_bytes);
            n_copied += copy.n_bytes;
        }
        stream.wait();
        return n_copied;
    }

    // Valid until the next fetch().
    template <typename T>
    std::span<T> at(std::size_t offset, std::size_t n) const {
        return {reinterpret_cast<T*>(pinned_.data() + offset), n};
    }

  private:
    struct Copy {
        std::size_t offset;
        const void* from;
        std::size_t n_bytes;
    };
    std::vector<Copy> copies_;
    std::size_t n_bytes_ = 0;
    PinnedMemory pinned_;
};

}  // namespace knap
