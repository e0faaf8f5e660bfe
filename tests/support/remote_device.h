// A device that has memory of its own: a worker on loopback, which computes on the CPU too. It
// stands in for a GPU where there is none.
#pragma once

#include "device/device_list.h"

namespace knap::test {

// Of a worker of this process, for as long as that lives.
ggml_backend_dev_t remote_device();

}  // namespace knap::test
