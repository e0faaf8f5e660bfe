#include "graph/forward_outputs.h"

#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"

namespace knap {
namespace {

std::size_t bytes_of(const ggml_tensor* tensor) {
    return tensor != nullptr ? ggml_nbytes(tensor) : 0;
}

std::size_t total_bytes(const BuiltGraph& built) {
    std::size_t n_bytes = bytes_of(built.logits) + bytes_of(built.stream);
    for (const ggml_tensor* capture : built.captures) {
        n_bytes += bytes_of(capture);
    }
    return n_bytes;
}

}  // namespace

StageResult ForwardOutputs::fetch(const BuiltGraph& built) {
    if (!backend_.is_host()) {
        reserve(total_bytes(built));
    }
    captures_.clear();
    for (const ggml_tensor* capture : built.captures) {
        captures_.push_back(view(capture));
    }
    const StageResult result{.result = {.logits = view(built.logits), .captures = captures_},
                             .stream = view(built.stream)};
    backend_.wait();
    return result;
}

std::span<const float> ForwardOutputs::view(const ggml_tensor* tensor) {
    if (tensor == nullptr) {
        return {};
    }
    return backend_.is_host() ? std::span(static_cast<const float*>(tensor->data),
                                          static_cast<std::size_t>(ggml_nelements(tensor)))
                              : copy(tensor);
}

std::span<const float> ForwardOutputs::copy(const ggml_tensor* tensor) {
    auto* to = static_cast<std::byte*>(ggml_backend_buffer_get_base(staging_.get())) + n_used_;
    backend_.read(tensor, to, 0, ggml_nbytes(tensor));
    n_used_ += ggml_nbytes(tensor);
    return {reinterpret_cast<const float*>(to), static_cast<std::size_t>(ggml_nelements(tensor))};
}

void ForwardOutputs::reserve(std::size_t n_bytes) {
    n_used_ = 0;
    if (n_bytes == 0) {
        return;
    }
    if (staging_ != nullptr && ggml_backend_buffer_get_size(staging_.get()) >= n_bytes) {
        return;
    }
    staging_.reset();
    staging_.reset(ggml_backend_buft_alloc_buffer(backend_.staging_type(), n_bytes));
    if (staging_ == nullptr) {
        fail("memory: expected ", n_bytes >> 20, " MiB for the results of a pass, found less");
    }
}

}  // namespace knap
