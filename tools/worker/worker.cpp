#include "tools/worker/worker.h"

#include "base/text.h"
#include "device/cpu_topology.h"
#include "device/remote_workers.h"
#include "runtime/layer_devices.h"

namespace knap {

void run_worker(const WorkerConfig& config,
                const std::function<void(const std::string& what)>& on_listening) {
    const WorkerAddress address{config.host, config.port};
    std::string names;
    std::vector<ggml_backend_dev_t> devices;
    for (const DeviceEntry& entry :
         wanted_devices({.device = config.device}, {.local = list_devices(), .remote = {}})) {
        names += concat(names.empty() ? "" : ", ", entry.name, " (", entry.description, ")");
        devices.push_back(entry.device);
    }
    const int n_threads = config.n_threads > 0 ? config.n_threads : default_thread_count();
    serve_clients(address, n_threads, devices,
                  [&] { on_listening(concat(address.text(), ": ", names)); });
}

}  // namespace knap
