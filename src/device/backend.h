// A device that computes, as a ggml backend. The CPU has a thread pool that lives as long as the
// backend; other devices (device_list.h) have their own memory, to and from which tensors are
// copied. Other folders use Backend and need not know which device it is.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "ggml-cpp.h"

#include "device/lost_worker.h"
#include "device/thread_team.h"

namespace knap {

class Backend {
  public:
    // The CPU with a pool of `n_threads` threads; 0 means default_thread_count() of cpu_topology.h.
    explicit Backend(int n_threads);
    // Any device, such as one of list_devices(). `n_threads` applies to the CPU, as above.
    Backend(ggml_backend_dev_t device, int n_threads);
    ~Backend();
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;

    ggml_backend_dev_t device() const;
    ggml_backend_buffer_type_t buffer_type() const;  // default for tensors
    // Host memory with the fastest copies to and from the device.
    ggml_backend_buffer_type_t staging_type() const;
    // Layouts for faster kernels (repacked weights). Tensors in them can only be used in matrix
    // products.
    std::vector<ggml_backend_buffer_type_t> extra_buffer_types() const;
    bool supports(const ggml_tensor* op) const;
    // True if the device computes in host memory, as the CPU does.
    bool is_host() const;
    int n_threads() const;  // of the pool; 0 on devices other than the CPU

    // The threads that compute operators of our own: as many as the pool has. Made when first asked
    // for. Only on the CPU.
    ThreadTeam& team() const;

    // Promises that a graph, whose tensors are allocated, will not change any more and may run
    // often, so that the device need not check it for changes.
    void settle(ggml_cgraph* graph);
    // Runs a graph whose tensors are allocated. Returns false when `should_abort` ended it early,
    // throws when it failed. A device other than the host may still be computing when this returns:
    // see wait().
    bool compute(ggml_cgraph* graph);
    // Polled between the nodes of a graph, from any thread of the pool. Empty: never. Devices other
    // than the CPU cannot be interrupted; there, is_aborted() is checked before a graph starts.
    void set_abort(std::function<bool()> should_abort);
    bool is_aborted() const;

    // Copies between host memory and a tensor on the device, in the order of the calls to these and
    // to compute(). The host memory must stay valid and unchanged until wait() returns.
    void write(ggml_tensor* tensor, const void* from, std::size_t offset, std::size_t n_bytes);
    void read(const ggml_tensor* tensor, void* to, std::size_t offset, std::size_t n_bytes);
    // Waits until all queued copies and computations are done.
    void wait();

    // To be held during other ggml calls that may wait for the device, such as allocations. If the
    // device belongs to a worker that does not answer, the process ends (lost_worker.h).
    [[nodiscard]] WorkerWait waiting() const;

    // The ggml thread pool, to share with a peer (benchmarks give it to libllama). Null on devices
    // other than the CPU.
    void* thread_pool() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
