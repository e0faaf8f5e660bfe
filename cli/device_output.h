// What can compute, for --list-devices.
#pragma once

namespace knap {

// Prints a line for each device; an exit code.
int run_list_devices();

}  // namespace knap
