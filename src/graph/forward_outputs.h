// The results of a pass in memory that the host can read: in the graph's own memory on a host
// device, in a copy elsewhere.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

#include "graph/graph_cache.h"
#include "graph/pass_results.h"

namespace knap {

class Backend;

class ForwardOutputs {
  public:
    explicit ForwardOutputs(Backend& backend) : backend_(backend) {}

    // Waits until the graph is computed. The result is valid until the next call.
    PassOutputs fetch(const BuiltGraph& built);

    std::size_t bytes_read() const { return bytes_read_; }  // from the device; 0 on a host device

  private:
    void reserve(std::size_t n_bytes);
    // A tensor's numbers: as they lie there, or where a copy of them will be. Empty for null.
    template <typename Number>
    std::span<const Number> view(const ggml_tensor* tensor);
    const std::byte* copy(const ggml_tensor* tensor);
    void view_captures(const BuiltGraph& built);

    Backend& backend_;
    ggml_backend_buffer_ptr staging_;  // none on a host device
    std::size_t n_used_ = 0;
    std::size_t bytes_read_ = 0;
    std::vector<std::span<const float>> captures_;
};

}  // namespace knap
