// The GPU that tests labelled `gpu` compute on.
#pragma once

#include "device/device_list.h"

namespace knap::test {

// Null: there is none.
inline ggml_backend_dev_t gpu() {
    const DeviceEntry first = list_devices().front();
    return first.is_cpu ? nullptr : first.device;
}

}  // namespace knap::test

// A line in the test's output says so.
#define KNAP_SKIP_WITHOUT_GPU()                                    \
    if (knap::test::gpu() == nullptr) {                            \
        GTEST_SKIP() << "no GPU, or a build without one (CUDA=1)"; \
    }
