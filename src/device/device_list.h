// The devices that ggml can compute with on this machine.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ggml-backend.h"

namespace knap {

struct DeviceEntry {
    ggml_backend_dev_t device;
    std::string name;         // "CPU", "CUDA0"
    std::string description;  // "NVIDIA H200"
    bool is_cpu = false;
    std::size_t memory_bytes = 0;
    std::size_t free_bytes = 0;
};

DeviceEntry describe(ggml_backend_dev_t device);
ggml_backend_dev_t cpu_device();
// GPUs in ggml's order, then the CPU.
std::vector<DeviceEntry> list_devices();
// Logs, once, that there is no GPU although ggml was built with GPU support.
void say_no_gpu();
// Finds a device by name, ignoring case. Throws knap::Error with the available names.
DeviceEntry find_device(std::string_view name, std::span<const DeviceEntry> entries);

}  // namespace knap
