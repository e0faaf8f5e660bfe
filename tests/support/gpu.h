// The GPU for tests labelled `gpu`.
#pragma once

#include "device/device_list.h"

namespace knap::test {

// Returns null when there is none.
inline ggml_backend_dev_t gpu() {
    const DeviceEntry first = list_devices().front();
    return first.is_cpu ? nullptr : first.device;
}

}  // namespace knap::test

// Skips the test, with a line in its output, when there is no GPU.
#define KNAP_SKIP_WITHOUT_GPU()                                    \
    if (knap::test::gpu() == nullptr) {                            \
        GTEST_SKIP() << "no GPU, or a build without one (CUDA=1)"; \
    }
