#include "device/device_list.h"

#include <algorithm>
#include <cctype>
#include <mutex>

#include "base/error.h"
#include "base/log.h"
#include "base/quoted.h"
#include "base/text.h"
#include "device/ggml_log.h"

namespace knap {
namespace {

// Backends are linked in, or lie beside ggml as libraries to load.
void load_backends() {
    static std::once_flag once;
    std::call_once(once, [] {
        install_ggml_log();
        if (ggml_backend_dev_count() == 0) {
            ggml_backend_load_all();
        }
    });
}

// What speeds up the CPU's own work (BLAS) is no place for a model.
bool can_hold_a_model(ggml_backend_dev_t device) {
    return ggml_backend_dev_type(device) != GGML_BACKEND_DEVICE_TYPE_ACCEL;
}

bool is_same_name(std::string_view a, std::string_view b) {
    return std::ranges::equal(
        a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

DeviceEntry describe(ggml_backend_dev_t device) {
    DeviceEntry entry{.device = device,
                      .name = ggml_backend_dev_name(device),
                      .description = ggml_backend_dev_description(device),
                      .is_cpu = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU};
    ggml_backend_dev_memory(device, &entry.free_bytes, &entry.memory_bytes);
    return entry;
}

ggml_backend_dev_t cpu_device() {
    load_backends();
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device == nullptr) {
        fail("ggml: expected a CPU backend, found none");
    }
    return device;
}

std::vector<DeviceEntry> list_devices() {
    load_backends();
    std::vector<DeviceEntry> entries;
    for (std::size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (can_hold_a_model(device)) {
            entries.push_back(describe(device));
        }
    }
    std::stable_partition(entries.begin(), entries.end(),
                          [](const DeviceEntry& entry) { return !entry.is_cpu; });
    return entries;
}

void say_no_gpu() {
    static std::once_flag once;
    if (ggml_backend_reg_by_name("CUDA") != nullptr) {
        std::call_once(
            once, [] { write_log(LogLevel::warning, "no GPU was found: computing on the CPU"); });
    }
}

DeviceEntry find_device(std::string_view name, std::span<const DeviceEntry> entries) {
    for (const DeviceEntry& entry : entries) {
        if (is_same_name(entry.name, name)) {
            return entry;
        }
    }
    fail("`.devices`: expected one of ", join(entries, ", ", &DeviceEntry::name), "; found ",
         in_quotes(name));
}

}  // namespace knap
