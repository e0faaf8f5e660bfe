// A device with its own memory: a worker on loopback, which also computes on the CPU. It stands in
// for a GPU when there is none.
#pragma once

#include <string>

#include "device/device_list.h"

namespace knap::test {

// The address of a worker in this process, "host:port", for RuntimeConfig::workers. A worker serves
// one client at a time, so this is not the worker of remote_device().
const std::string& remote_worker();
// The device of a worker in this process. Valid until the process ends.
ggml_backend_dev_t remote_device();

}  // namespace knap::test
