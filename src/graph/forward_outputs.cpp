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
    std::size_t n_bytes = bytes_of(built.logits) + bytes_of(built.stream) +
                          bytes_of(built.choices) + bytes_of(built.cosines) +
                          bytes_of(built.probabilities);
    for (const ggml_tensor* capture : built.captures) {
        n_bytes += bytes_of(capture);
    }
    return n_bytes;
}

}  // namespace

PassOutputs ForwardOutputs::fetch(const BuiltGraph& built) {
    view_captures(built);
    const PassOutputs outputs{.logits = view<float>(built.logits),
                              .choices = view<Token>(built.choices),
                              .captures = captures_,
                              .cosines = view<float>(built.cosines),
                              .probabilities = view<float>(built.probabilities),
                              .stream = view<float>(built.stream)};
    backend_.wait();
    return outputs;
}

void ForwardOutputs::view_captures(const BuiltGraph& built) {
    if (!backend_.is_host()) {
        reserve(total_bytes(built));
    }
    captures_.clear();
    for (const ggml_tensor* capture : built.captures) {
        captures_.push_back(view<float>(capture));
    }
}

template <typename Number>
std::span<const Number> ForwardOutputs::view(const ggml_tensor* tensor) {
    if (tensor == nullptr) {
        return {};
    }
    const void* data = backend_.is_host() ? tensor->data : copy(tensor);
    return {static_cast<const Number*>(data), static_cast<std::size_t>(ggml_nelements(tensor))};
}

// Queued behind those that are on their way.
const std::byte* ForwardOutputs::copy(const ggml_tensor* tensor) {
    auto* to = static_cast<std::byte*>(ggml_backend_buffer_get_base(staging_.get())) + n_used_;
    backend_.read(tensor, to, 0, ggml_nbytes(tensor));
    n_used_ += ggml_nbytes(tensor);
    bytes_read_ += ggml_nbytes(tensor);
    return to;
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
