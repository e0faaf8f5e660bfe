// A graph on a backend, built once and run many times.
#pragma once

#include <memory>

#include "ggml-alloc.h"
#include "ggml-backend.h"
#include "ggml-cpp.h"

#include "device/backend.h"

namespace knap::bench {

class SingleGraph {
  public:
    explicit SingleGraph(Backend& backend)
        : backend_(backend),
          context_(ggml_init(
              {kMaxNodes * ggml_tensor_overhead() + ggml_graph_overhead(), nullptr, true})),
          graph_(ggml_new_graph(context_.get())),
          allocator_(ggml_gallocr_new(backend.buffer_type())) {}

    ggml_context* context() const { return context_.get(); }
    ggml_cgraph* graph() const { return graph_; }
    // Ends building. `output` can be read after a run.
    void finish(ggml_tensor* output) {
        ggml_set_output(output);
        ggml_build_forward_expand(graph_, output);
        ggml_gallocr_alloc_graph(allocator_.get(), graph_);
    }
    void run() { backend_.compute(graph_); }

  private:
    static constexpr std::size_t kMaxNodes = 512;
    Backend& backend_;
    ggml_context_ptr context_;
    ggml_cgraph* graph_;
    ggml_gallocr_ptr allocator_;
};

}  // namespace knap::bench
