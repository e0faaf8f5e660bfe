#include "device_output.h"

#include <iostream>

#include "knap/knap.h"

#include "base/number_text.h"
#include "base/text.h"
#include "exit_code.h"

namespace knap {
namespace {

std::string gib(std::int64_t n_bytes) {
    constexpr double kGib = 1 << 30;
    return concat(format_fixed(static_cast<double>(n_bytes) / kGib, 1), " GiB");
}

}  // namespace

int run_list_devices() {
    for (const DeviceInfo& device : devices()) {
        std::cout << concat(device.name, "\t", device.description, "\t", gib(device.memory_bytes),
                            ", ", gib(device.free_bytes), " free\n");
    }
    return kExitDone;
}

}  // namespace knap
