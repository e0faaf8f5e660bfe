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

// What there is to choose from.
struct KnownDevices {
    std::vector<DeviceEntry> local;   // list_devices()
    std::vector<DeviceEntry> remote;  // of workers
};

// A device with the number of layers that it gets, one or more.
struct DevicePart {
    DeviceEntry device;
    int n_layers = 0;
};

// The devices that RuntimeConfig::devices names; else those of workers; else the first. Throws
// knap::Error for a name that there is not.
std::vector<DeviceEntry> wanted_devices(const RuntimeConfig& config, const KnownDevices& known);

// The devices that RuntimeConfig::devices, n_gpu_layers and workers come to, in the order of the
// layers. Several share them in proportion to the memory that they have free, or evenly where
// workers are among them. Throws as wanted_devices() does.
std::vector<DevicePart> choose_devices(const RuntimeConfig& config,
                                       const KnownDevices& known,
                                       int n_layers);

// The same, of this machine and of RuntimeConfig::workers, started.
class LayerDevices {
  public:
    LayerDevices(const RuntimeConfig& config, int n_layers);

    const LayerMap& layers() const { return layers_; }

  private:
    std::vector<WorkerConnection> workers_;
    std::vector<DevicePart> parts_;
    std::vector<std::unique_ptr<Backend>> backends_;  // of each part
    LayerMap layers_;
};

}  // namespace knap
