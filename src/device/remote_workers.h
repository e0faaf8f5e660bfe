// Devices of other machines over ggml's RPC. It has no authentication and no encryption: use it
// only on loopback and private networks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ggml-cpp.h"

#include "device/device_list.h"
#include "device/worker_address.h"

namespace knap {

// A connection to a worker, which serves one program at a time: it is ours while the object lives.
// If the worker is lost, the process ends (lost_worker.h).
class WorkerConnection {
  public:
    // Throws knap::Error if nothing listens at the address or the worker lends no devices. Ends the
    // process if it listens but does not answer, and later if a call waits more than `patience_s`
    // seconds for an answer (0: waits indefinitely).
    explicit WorkerConnection(const WorkerAddress& address, int patience_s = 0);

    const std::vector<DeviceEntry>& devices() const { return devices_; }

  private:
    ggml_backend_ptr held_;  // ggml keeps the connection open while a backend of it exists
    std::vector<DeviceEntry> devices_;
};

// Lends `devices` to one program after another at this address, until the process ends. Throws
// knap::Error on failure. Calls `on_listening` on another thread once programs can connect.
[[noreturn]] void serve_clients(const WorkerAddress& address,
                                int n_threads,
                                std::vector<ggml_backend_dev_t> devices,
                                const std::function<void()>& on_listening);

}  // namespace knap
