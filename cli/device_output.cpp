#include "cli/device_output.h"

#include "knap/knap.h"

#include "base/number_text.h"
#include "base/text.h"
#include "cli/exit_code.h"
#include "cli/generate/text_output.h"

namespace knap {

int run_list_devices(std::span<const std::string> workers) {
    TextOutput output;
    for (const DeviceInfo& device : devices(workers)) {
        output.write(concat(device.name, "\t", device.description, "\t",
                            format_gib(device.memory_bytes, 1), ", ",
                            format_gib(device.free_bytes, 1), " free\n"));
    }
    return kExitDone;
}

}  // namespace knap
