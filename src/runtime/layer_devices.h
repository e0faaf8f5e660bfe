// The devices that compute an engine's layers.
#pragma once

#include <memory>
#include <vector>

#include "knap/types.h"

#include "device/backend.h"
#include "device/device_list.h"
#include "device/layer_map.h"
#include "device/remote_workers.h"

namespace knap {

// The available devices.
struct KnownDevices {
    std::vector<DeviceEntry> local;   // list_devices()
    std::vector<DeviceEntry> remote;  // of workers
};

// A device and its number of layers, at least one.
struct DevicePart {
    DeviceEntry device;
    int n_layers = 0;
};

// The devices named in RuntimeConfig::devices; by default those of workers, otherwise the first
// local one. Throws knap::Error for an unknown name.
std::vector<DeviceEntry> wanted_devices(const RuntimeConfig& config, const KnownDevices& known);

// The devices that RuntimeConfig::devices, n_gpu_layers and workers select, in layer order. Several
// devices share the layers in proportion to their free memory, or evenly if there are workers.
// Throws as wanted_devices() does.
std::vector<DevicePart> choose_devices(const RuntimeConfig& config,
                                       const KnownDevices& known,
                                       int n_layers);

// The same for this machine and RuntimeConfig::workers, with the devices started.
class LayerDevices {
  public:
    LayerDevices(const RuntimeConfig& config, int n_layers);

    const LayerMap& layers() const { return layers_; }

  private:
    std::vector<WorkerConnection> workers_;
    std::vector<DevicePart> parts_;
    std::vector<std::unique_ptr<Backend>> backends_;  // [part]
    LayerMap layers_;
};

}  // namespace knap
