// Memory on a device that grows to what the largest pass so far needed.
#pragma once

#include <cstddef>

#include "kernels/cuda/device_memory.h"

namespace knap {

template <typename T>
class GrowingMemory {
  public:
    explicit GrowingMemory(const char* what) : what_(what) {}

    // Room for `n` values, which are not kept when it grows.
    T* reserve(std::size_t n, CudaStream& stream) {
        if (memory_.bytes() < n * sizeof(T)) {
            stream.wait();
            memory_ = {};
            memory_ = CudaMemory(n * sizeof(T), what_);
        }
        return data();
    }
    T* data() const { return memory_.as<T>(); }
    std::size_t bytes() const { return memory_.bytes(); }

  private:
    const char* what_;
    CudaMemory memory_;
};

}  // namespace knap
