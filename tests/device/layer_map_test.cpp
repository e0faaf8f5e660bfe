#include "device/layer_map.h"

#include <gtest/gtest.h>

#include "device/backend.h"

namespace knap::layer_map_test {
namespace {

TEST(LayerMap, OneDeviceHasAllLayers) {
    Backend backend(1);
    const LayerMap map(backend, 5);
    ASSERT_EQ(map.shares().size(), 1u);
    EXPECT_EQ(map.n_layers(), 5);
    EXPECT_EQ(map.of_layer(4).backend, &backend);
    EXPECT_EQ(&map.first(), &map.last());
}

TEST(LayerMap, SharesAreConsecutiveWithoutEmptyOnes) {
    Backend first(1);
    Backend second(1);
    Backend third(1);
    const std::vector<LayerCount> counts{{first, 2}, {second, 0}, {third, 3}};
    const LayerMap map(counts);
    ASSERT_EQ(map.shares().size(), 2u);
    EXPECT_EQ(map.first().backend, &first);
    EXPECT_EQ(map.last().backend, &third);
    EXPECT_EQ(map.last().first_layer, 2);
    EXPECT_EQ(map.n_layers(), 5);
    EXPECT_EQ(map.of_layer(1).backend, &first);
    EXPECT_EQ(map.of_layer(2).backend, &third);
    EXPECT_EQ(map.last().n_layers(), 3);
}

}  // namespace
}  // namespace knap::layer_map_test
