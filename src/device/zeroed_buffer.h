// Device memory that is initially zero. On a host device the pages come from the system already
// zero and are allocated when first written, so a long context that is never filled costs nothing.
#pragma once

#include <cstddef>
#include <optional>

#include "ggml-cpp.h"

#include "device/host_memory.h"

namespace knap {

class Backend;

class ZeroedBuffer {
  public:
    // Allocates every tensor of `tensors` in one buffer; the buffer must outlive their use.
    ZeroedBuffer(const Backend& backend, ggml_context* tensors);
    // `size` bytes on a host device, in huge pages if available; place() assigns tensors to
    // offsets.
    ZeroedBuffer(const Backend& backend, std::size_t size);
    void place(ggml_tensor* tensor, std::size_t offset);
    ZeroedBuffer(const ZeroedBuffer&) = delete;
    ZeroedBuffer& operator=(const ZeroedBuffer&) = delete;

    std::size_t size() const { return size_; }

  private:
    void place_on_host(const Backend& backend, ggml_context* tensors);

    std::optional<HostMemory> memory_;  // on a host device
    ggml_backend_buffer_ptr buffer_;    // elsewhere
    std::size_t size_ = 0;
};

}  // namespace knap
