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
// GPUs first, in ggml's order; then the CPU.
std::vector<DeviceEntry> list_devices();
// Says, once, that there is no GPU, where ggml was built for them.
void say_no_gpu();
// The device of that name, in any case; throws knap::Error with the names that there are.
DeviceEntry find_device(std::string_view name, std::span<const DeviceEntry> entries);

}  // namespace knap
