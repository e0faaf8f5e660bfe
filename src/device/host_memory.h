// Memory of the system that a host device uses as it is: zero at first, and taken page by page when
// it is written.
#pragma once

#include <cstddef>
#include <string_view>

#include "ggml-cpp.h"

namespace knap {

class Backend;

class HostMemory {
  public:
    enum class Pages {
        small,  // nothing is taken that is not written
        huge,   // fewer address translations, for what is read again and again
    };

    // Whether the device computes with such memory.
    static bool is_usable_by(const Backend& backend);

    // Throws knap::Error when there is not enough; `what` says for whom it is and what would help.
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
