#include "device/zeroed_buffer.h"

#include <string_view>

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"

namespace knap {
namespace {

constexpr std::string_view kWhat = "the cache (a smaller `.n_ctx` needs less)";

[[noreturn]] void fail_for_memory(std::size_t bytes) {
    fail("memory: expected ", bytes >> 20, " MiB for ", kWhat, ", found less");
}

}  // namespace

ZeroedBuffer::ZeroedBuffer(const Backend& backend, ggml_context* tensors) {
    if (HostMemory::is_usable_by(backend)) {
        place_on_host(backend, tensors);
        return;
    }
    const WorkerWait wait = backend.waiting();
    size_ = ggml_backend_alloc_ctx_tensors_from_buft_size(tensors, backend.buffer_type());
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(tensors, backend.buffer_type()));
    if (buffer_ == nullptr) {
        fail_for_memory(size_);
    }
    ggml_backend_buffer_clear(buffer_.get(), 0);
}

void ZeroedBuffer::place_on_host(const Backend& backend, ggml_context* tensors) {
    size_ = ggml_backend_alloc_ctx_tensors_from_buft_size(tensors, backend.buffer_type());
    memory_.emplace(backend, size_, HostMemory::Pages::small, kWhat);
    ggml_tallocr allocator = ggml_tallocr_new(memory_->buffer());
    for (auto* t = ggml_get_first_tensor(tensors); t != nullptr;
         t = ggml_get_next_tensor(tensors, t)) {
        if (t->view_src == nullptr) {
            const ggml_status status = ggml_tallocr_alloc(&allocator, t);
            KNAP_ASSERT(status == GGML_STATUS_SUCCESS, "the buffer was sized for these tensors");
        }
    }
}

ZeroedBuffer::ZeroedBuffer(const Backend& backend, std::size_t size) : size_(size) {
    memory_.emplace(backend, size_, HostMemory::Pages::huge, kWhat);
}

void ZeroedBuffer::place(ggml_tensor* tensor, std::size_t offset) {
    const ggml_status status =
        ggml_backend_tensor_alloc(memory_->buffer(), tensor, memory_->data() + offset);
    KNAP_ASSERT(status == GGML_STATUS_SUCCESS, "the buffer was sized for this tensor");
}

}  // namespace knap
