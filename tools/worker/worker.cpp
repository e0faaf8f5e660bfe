#include "tools/worker/worker.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "device/cpu_topology.h"
#include "device/remote_workers.h"
#include "runtime/layer_devices.h"

namespace knap {

void run_worker(const WorkerConfig& config,
                const std::function<void(const std::string& what)>& on_listening) {
    const WorkerAddress address{config.host, config.port};
    const std::vector<DeviceEntry> entries =
        wanted_devices({.devices = config.devices}, {.local = list_devices(), .remote = {}});
    const std::string names = join(entries, ", ", [](const DeviceEntry& entry) {
        return concat(entry.name, " (", entry.description, ")");
    });
    std::vector<ggml_backend_dev_t> devices;
    std::ranges::transform(entries, std::back_inserter(devices), &DeviceEntry::device);
    const int n_threads = config.n_threads > 0 ? config.n_threads : default_thread_count();
    serve_clients(address, n_threads, devices,
                  [&] { on_listening(concat(address.text(), ": ", names)); });
}

}  // namespace knap
