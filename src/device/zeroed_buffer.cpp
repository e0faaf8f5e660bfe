#include "device/zeroed_buffer.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include <sys/mman.h>

#include "base/error.h"
#include "device/backend.h"

namespace knap {
namespace {

bool wraps_host_memory(ggml_backend_dev_t device) {
    ggml_backend_dev_props properties;
    ggml_backend_dev_get_props(device, &properties);
    return properties.caps.buffer_from_host_ptr;
}

[[noreturn]] void fail_for_memory(std::size_t bytes) {
    fail("memory: expected ", bytes / (1 << 20),
         " MiB for the cache, found less (a smaller -c needs less)");
}

}  // namespace

ZeroedBuffer::ZeroedBuffer(const Backend& backend, ggml_context* tensors) {
    if (wraps_host_memory(backend.device())) {
        place_on_host(backend, tensors);
        return;
    }
    size_ = ggml_backend_alloc_ctx_tensors_from_buft_size(tensors, backend.buffer_type());
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(tensors, backend.buffer_type()));
    if (buffer_ == nullptr) {
        fail_for_memory(size_);
    }
    ggml_backend_buffer_clear(buffer_.get(), 0);
}

void ZeroedBuffer::place_on_host(const Backend& backend, ggml_context* tensors) {
    size_ = ggml_backend_alloc_ctx_tensors_from_buft_size(tensors, backend.buffer_type());
    void* mapping = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) {
        fail_for_memory(size_);
    }
    mapping_ = mapping;
    buffer_.reset(ggml_backend_dev_buffer_from_host_ptr(backend.device(), mapping_, size_, 0));
    KNAP_ASSERT(buffer_ != nullptr, "a host device takes page-aligned memory");
    ggml_tallocr allocator = ggml_tallocr_new(buffer_.get());
    for (auto* t = ggml_get_first_tensor(tensors); t != nullptr;
         t = ggml_get_next_tensor(tensors, t)) {
        if (t->view_src == nullptr) {
            const ggml_status status = ggml_tallocr_alloc(&allocator, t);
            KNAP_ASSERT(status == GGML_STATUS_SUCCESS, "the buffer was sized for these tensors");
        }
    }
}

ZeroedBuffer::~ZeroedBuffer() {
    buffer_.reset();
    if (mapping_ != nullptr) {
        munmap(mapping_, size_);
    }
}

}  // namespace knap
