#include "device/mirrored_buffer.h"

#include "ggml-alloc.h"
#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"

namespace knap {
namespace {

std::byte* base_of(ggml_backend_buffer_t buffer) {
    return static_cast<std::byte*>(ggml_backend_buffer_get_base(buffer));
}

}  // namespace

MirroredBuffer::MirroredBuffer(Backend& backend, ggml_context* tensors, std::string_view what)
    : backend_(backend) {
    const WorkerWait wait = backend.waiting();
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(tensors, backend.buffer_type()));
    if (buffer_ != nullptr && !backend.is_host()) {
        image_.reset(ggml_backend_buft_alloc_buffer(backend.staging_type(), size()));
    }
    if (buffer_ == nullptr || (image_ == nullptr && !backend.is_host())) {
        fail("memory: expected room for ", what, ", found less");
    }
    context_.reset(ggml_init({ggml_tensor_overhead(), nullptr, true}));
    whole_ = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I8, static_cast<std::int64_t>(size()));
    const ggml_status status =
        ggml_backend_tensor_alloc(buffer_.get(), whole_, base_of(buffer_.get()));
    KNAP_ASSERT(status == GGML_STATUS_SUCCESS, "a buffer holds as many bytes as it has");
}

std::size_t MirroredBuffer::offset_of(const ggml_tensor* tensor) const {
    return static_cast<std::size_t>(static_cast<const std::byte*>(tensor->data) -
                                    base_of(buffer_.get()));
}

std::byte* MirroredBuffer::host_data(const ggml_tensor* tensor) const {
    return image_ == nullptr ? static_cast<std::byte*>(tensor->data)
                             : base_of(image_.get()) + offset_of(tensor);
}

void MirroredBuffer::upload_until(const ggml_tensor* last, std::size_t n_bytes) {
    if (image_ != nullptr) {
        backend_.write(whole_, base_of(image_.get()), 0, offset_of(last) + n_bytes);
    }
}

std::size_t MirroredBuffer::size() const {
    return ggml_backend_buffer_get_size(buffer_.get());
}

}  // namespace knap
