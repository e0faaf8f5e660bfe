// What several devices promise together.
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "forward/pipeline.h"
#include "kv/kv_store.h"

namespace knap::test::device_limits_test {
namespace {

class LimitedDevice final : public DeviceModel {
  public:
    explicit LimitedDevice(const DeviceLimits& limits) : limits_(limits) {}

    LayerRange layers() const override { return {0, 1}; }
    DeviceLimits limits() const override { return limits_; }
    std::unique_ptr<KvStore> new_store(const PageShape& /*pages*/) const override { return {}; }
    std::unique_ptr<Stage> new_stage(KvStore& /*store*/, int /*max_rows*/) const override {
        return {};
    }

  private:
    DeviceLimits limits_;
};

DeviceLimits together(const DeviceLimits& a, const DeviceLimits& b) {
    std::vector<std::unique_ptr<DeviceModel>> devices;
    devices.push_back(std::make_unique<LimitedDevice>(a));
    devices.push_back(std::make_unique<LimitedDevice>(b));
    return weakest_limits(devices);
}

TEST(DeviceLimits, AreThoseOfTheWeakestDevice) {
    const DeviceLimits limits =
        together({.exact_rows = 512, .has_exact_trees = true, .page_rows = 256},
                 {.exact_rows = 4, .page_rows = 64, .attention = "flash"});
    EXPECT_EQ(limits.exact_rows, 4);
    EXPECT_FALSE(limits.has_exact_trees);
    EXPECT_EQ(limits.page_rows, 0);
    EXPECT_EQ(limits.attention, "flash");
}

TEST(DeviceLimits, VerificationsAreBoundByAnyDeviceThatBindsThem) {
    EXPECT_EQ(together({}, {}).verify_rows, 0);
    EXPECT_EQ(together({.verify_rows = 16}, {}).verify_rows, 16);
    EXPECT_EQ(together({}, {.verify_rows = 16}).verify_rows, 16);
    EXPECT_EQ(together({.verify_rows = 8}, {.verify_rows = 16}).verify_rows, 8);
}

}  // namespace
}  // namespace knap::test::device_limits_test
