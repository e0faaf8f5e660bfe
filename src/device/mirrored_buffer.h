// Tensors that the host fills and a device reads. On a host device both use the same memory;
// elsewhere there is a copy in host memory, which is uploaded to the device in one transfer.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "ggml-cpp.h"

namespace knap {

class Backend;

class MirroredBuffer {
  public:
    // Allocates all tensors of `tensors`, in order. `backend` must outlive the buffer. Throws
    // knap::Error when there is not enough memory; `what` names the purpose.
    MirroredBuffer(Backend& backend, ggml_context* tensors, std::string_view what);

    // A tensor's data in host memory.
    template <typename Value>
    std::span<Value> host(const ggml_tensor* tensor) const {
        return {reinterpret_cast<Value*>(host_data(tensor)),
                static_cast<std::size_t>(ggml_nelements(tensor))};
    }
    // Queues a copy of the first tensors to the device, up to `n_bytes` of `last`.
    void upload_until(const ggml_tensor* last, std::size_t n_bytes);

    std::size_t size() const;  // on the device

  private:
    std::byte* host_data(const ggml_tensor* tensor) const;
    std::size_t offset_of(const ggml_tensor* tensor) const;

    Backend& backend_;
    ggml_context_ptr context_;  // of `whole_`
    ggml_backend_buffer_ptr buffer_;
    ggml_backend_buffer_ptr image_;  // none on a host device
    ggml_tensor* whole_ = nullptr;   // i8, all of the buffer
};

}  // namespace knap
