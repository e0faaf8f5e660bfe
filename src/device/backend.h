// One device that computes, as a ggml backend. The CPU has a thread pool that lives as long as the
// backend does; other devices (device_list.h) have memory of their own, which tensors are copied to
// and from. Everything above this room speaks of a Backend; which device it is, is decided here.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "ggml-cpp.h"

#include "device/lost_worker.h"

namespace knap {

class Backend {
  public:
    // The CPU with a pool of `n_threads` threads; 0 means default_thread_count() of cpu_topology.h.
    explicit Backend(int n_threads);
    // Any device, such as one of list_devices(); the CPU as above.
    Backend(ggml_backend_dev_t device, int n_threads);
    ~Backend();
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    ggml_backend_dev_t device() const;
    ggml_backend_buffer_type_t buffer_type() const;  // where tensors go by default
    // Memory of the program that is copied to and from the device fastest.
    ggml_backend_buffer_type_t staging_type() const;
    // Layouts made for faster kernels (repacked weights): tensors there serve matrix products
    // alone.
    std::vector<ggml_backend_buffer_type_t> extra_buffer_types() const;
    bool supports(const ggml_tensor* op) const;
    // Whether the device computes in the program's own memory, as the CPU does.
    bool is_host() const;
    int n_threads() const;  // of the pool; 0: another device than the CPU

    // Says that a graph, whose tensors are allocated, will be computed as it is now, perhaps often:
    // the device then need not look whether it changed.
    void settle(ggml_cgraph* graph);
    // Runs a graph whose tensors are allocated. False when `should_abort` ended it early; throws
    // when it failed. Another device than the host may still be computing when this returns: see
    // wait().
    bool compute(ggml_cgraph* graph);
    // Polled between the nodes of a graph, from any thread of the pool. Empty: never. Other devices
    // than the CPU cannot be stopped: is_aborted() says before a graph that it is not wanted.
    void set_abort(std::function<bool()> should_abort);
    bool is_aborted() const;

    // Copies between the program's memory and a tensor on the device, in the order in which they
    // and computations are called for. The memory must stay as it is until wait() returns.
    void write(ggml_tensor* tensor, const void* from, std::size_t offset, std::size_t n_bytes);
    void read(const ggml_tensor* tensor, void* to, std::size_t offset, std::size_t n_bytes);
    // Until all that was called for is done.
    void wait();

    // Held around other calls of ggml that may wait for the device, such as those that take memory:
    // where that is a worker's, and it does not answer, the process ends (lost_worker.h).
    [[nodiscard]] WorkerWait waiting() const;

    // The pool as ggml knows it, to lend to a peer (the benchmarks give it to libllama). Null on
    // other devices than the CPU.
    void* thread_pool() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
