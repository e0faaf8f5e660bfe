// A device with its own memory: a worker on loopback, which also computes on the CPU. It stands in
// for a GPU when there is none.
#pragma once

#include "device/device_list.h"

namespace knap::test {

// The device of a worker in this process. Valid until the process ends.
ggml_backend_dev_t remote_device();

}  // namespace knap::test
