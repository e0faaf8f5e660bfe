// System memory that a host device uses directly. It is initially zero, and pages are allocated
// when first written.
#pragma once

#include <cstddef>
#include <string_view>

#include "ggml-cpp.h"

namespace knap {

class Backend;

class HostMemory {
  public:
    enum class Pages {
        small,  // only written pages are allocated
        huge,   // fewer address translations, for data that is read often
    };

    // True if the device can compute in such memory.
    static bool is_usable_by(const Backend& backend);

    // Throws knap::Error when there is not enough; `what` names the purpose and what would help.
    HostMemory(const Backend& backend, std::size_t n_bytes, Pages pages, std::string_view what);
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    std::byte* data() const { return data_; }
    ggml_backend_buffer_t buffer() const { return buffer_.get(); }

  private:
    void* mapping_;
    std::size_t mapped_;
    std::byte* data_;
    ggml_backend_buffer_ptr buffer_;
};

}  // namespace knap
