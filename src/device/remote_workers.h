// Devices of other machines, by ggml's RPC: no authentication, no encryption, for loopback and
// private networks alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ggml-cpp.h"

#include "device/device_list.h"
#include "device/worker_address.h"

namespace knap {

// A worker that is ours for as long as the object lives: it serves one program at a time. When it
// is lost the process ends (lost_worker.h).
class WorkerConnection {
  public:
    // Throws knap::Error when nobody listens there or it lends nothing; ends the process where
    // somebody listens and does not answer, and later where a call waits for an answer for more
    // than `patience_s` seconds (0: without end).
    explicit WorkerConnection(const WorkerAddress& address, int patience_s = 0);

    const std::vector<DeviceEntry>& devices() const { return devices_; }

  private:
    ggml_backend_ptr held_;  // ggml keeps the connection while a backend of it lives
    std::vector<DeviceEntry> devices_;
};

// Lends `devices` to one program after the other at this address, until the process ends. Throws
// knap::Error where that cannot be done. `on_listening` is called once programs can connect, on
// another thread.
[[noreturn]] void serve_clients(const WorkerAddress& address,
                                int n_threads,
                                std::vector<ggml_backend_dev_t> devices,
                                const std::function<void()>& on_listening);

}  // namespace knap
