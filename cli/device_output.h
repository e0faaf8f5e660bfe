// `--list-devices`.
#pragma once

#include <span>
#include <string>

namespace knap {

// Prints one line per device, those of the workers last. Returns an exit code.
int run_list_devices(std::span<const std::string> workers);

}  // namespace knap
