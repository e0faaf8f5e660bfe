#include "runtime/layer_devices.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <string>

#include "base/error.h"

namespace knap {
namespace {

std::vector<DeviceEntry> named_devices(std::span<const std::string> names,
                                       const KnownDevices& known) {
    std::vector<DeviceEntry> all = known.local;
    all.insert(all.end(), known.remote.begin(), known.remote.end());
    std::vector<DeviceEntry> devices;
    for (const std::string& name : names) {
        devices.push_back(find_device(name, all));
    }
    return devices;
}

// A device ends where the sum of what it and those before it weigh says.
std::vector<DevicePart> share_out(std::span<const DeviceEntry> devices,
                                  bool is_even,
                                  int n_layers) {
    const auto weight_of = [&](const DeviceEntry& device) {
        return is_even ? 1.0 : static_cast<double>(device.free_bytes);
    };
    double total = 0;
    for (const DeviceEntry& device : devices) {
        total += weight_of(device);
    }
    if (total == 0 && !is_even) {
        return share_out(devices, true, n_layers);
    }
    std::vector<DevicePart> parts;
    double sum = 0;
    int first_layer = 0;
    for (const DeviceEntry& device : devices) {
        sum += weight_of(device);
        const int end_layer = static_cast<int>(std::lround(n_layers * sum / total));
        if (end_layer > first_layer) {
            parts.push_back({device, end_layer - first_layer});
        }
        first_layer = end_layer;
    }
    return parts;
}

std::vector<std::unique_ptr<Backend>> start(std::span<const DevicePart> parts, int n_threads) {
    std::vector<std::unique_ptr<Backend>> backends;
    for (const DevicePart& part : parts) {
        backends.push_back(std::make_unique<Backend>(part.device.device, n_threads));
    }
    return backends;
}

LayerMap map_layers(std::span<const DevicePart> parts,
                    std::span<const std::unique_ptr<Backend>> backends) {
    std::vector<LayerCount> counts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        counts.push_back({*backends[i], parts[i].n_layers});
    }
    return LayerMap(counts);
}

std::vector<WorkerConnection> connect(const RuntimeConfig& config) {
    std::vector<WorkerConnection> connections;
    for (const std::string& worker : config.workers) {
        connections.emplace_back(parse_worker_address(worker), config.worker_timeout_s);
    }
    return connections;
}

KnownDevices known_devices(std::span<const WorkerConnection> workers) {
    KnownDevices known{.local = list_devices(), .remote = {}};
    for (const WorkerConnection& worker : workers) {
        known.remote.insert(known.remote.end(), worker.devices().begin(), worker.devices().end());
    }
    return known;
}

}  // namespace

std::vector<DeviceEntry> wanted_devices(const RuntimeConfig& config, const KnownDevices& known) {
    if (!config.devices.empty()) {
        return named_devices(config.devices, known);
    }
    return known.remote.empty() ? std::vector{known.local.front()} : known.remote;
}

std::vector<DevicePart> choose_devices(const RuntimeConfig& config,
                                       const KnownDevices& known,
                                       int n_layers) {
    std::vector<DeviceEntry> devices = wanted_devices(config, known);
    const bool is_even = !known.remote.empty();
    if (config.n_gpu_layers < 0) {
        return share_out(devices, is_even, n_layers);
    }
    std::erase_if(devices, [](const DeviceEntry& device) { return device.is_cpu; });
    const int n_elsewhere = devices.empty() ? 0 : std::min(config.n_gpu_layers, n_layers);
    std::vector<DevicePart> parts;
    if (n_elsewhere < n_layers) {
        const auto cpu = std::ranges::find_if(known.local, &DeviceEntry::is_cpu);
        KNAP_ASSERT(cpu != known.local.end(), "every machine has a CPU");
        parts.push_back({*cpu, n_layers - n_elsewhere});
    }
    std::ranges::move(share_out(devices, is_even, n_elsewhere), std::back_inserter(parts));
    return parts;
}

LayerDevices::LayerDevices(const RuntimeConfig& config, int n_layers)
    : workers_(connect(config)),
      parts_(choose_devices(config, known_devices(workers_), n_layers)),
      backends_(start(parts_, config.n_threads)),
      layers_(map_layers(parts_, backends_)) {
    const bool is_cpu_chosen =
        !config.devices.empty() || !workers_.empty() || config.n_gpu_layers == 0;
    if (parts_.back().device.is_cpu && !is_cpu_chosen) {
        say_no_gpu();
    }
}

}  // namespace knap
