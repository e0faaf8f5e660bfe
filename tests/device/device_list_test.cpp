#include "device/device_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "device/backend.h"

namespace knap::device_list_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(DeviceList, EndsWithTheCpu) {
    const std::vector<DeviceEntry> devices = list_devices();
    ASSERT_FALSE(devices.empty());
    EXPECT_TRUE(devices.back().is_cpu);
    EXPECT_EQ(devices.back().device, cpu_device());
    EXPECT_GT(devices.back().memory_bytes, 0u);
}

TEST(DeviceList, FindsDevicesByNameIgnoringCase) {
    EXPECT_EQ(find_device("CPU", list_devices()).device, cpu_device());
    EXPECT_EQ(find_device("cpu", list_devices()).device, cpu_device());
}

TEST(DeviceList, UnknownNameErrorListsTheDevices) {
    EXPECT_THAT([] { find_device("CUDA7", list_devices()); },
                ThrowsMessage<Error>(AllOf(HasSubstr("`.devices`: expected one of "),
                                           HasSubstr("CPU"), HasSubstr("found 'CUDA7'"))));
}

TEST(Backend, CpuBackendUsesHostMemory) {
    const Backend backend(1);
    EXPECT_TRUE(backend.is_host());
    EXPECT_EQ(backend.n_threads(), 1);
    EXPECT_EQ(backend.device(), cpu_device());
}

}  // namespace
}  // namespace knap::device_list_test
