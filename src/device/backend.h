// The device that computes: a ggml backend with a thread pool that lives as long as it does.
// Everything above this room speaks of a Backend; whether it is a CPU is decided here.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ggml-cpp.h"

namespace knap {

class Backend {
  public:
    // The CPU with a pool of `n_threads` threads; 0 means default_thread_count() of cpu_topology.h.
    explicit Backend(int n_threads);
    ~Backend();
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    ggml_backend_t handle() const;
    ggml_backend_dev_t device() const;
    ggml_backend_buffer_type_t buffer_type() const;  // where tensors go by default
    // Layouts made for faster kernels (repacked weights): tensors there serve matrix products
    // alone.
    std::vector<ggml_backend_buffer_type_t> extra_buffer_types() const;
    bool supports(const ggml_tensor* op) const;
    int n_threads() const;

    // Runs a graph whose tensors are allocated. False when `should_abort` ended it early; throws
    // when it failed.
    bool compute(ggml_cgraph* graph);
    // Polled between the nodes of a graph, from any thread of the pool. Empty: never.
    void set_abort(std::function<bool()> should_abort);

    // The pool as ggml knows it, to lend to a peer (the benchmarks give it to libllama).
    void* thread_pool() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
