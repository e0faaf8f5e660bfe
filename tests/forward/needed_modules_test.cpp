#include "forward/needed_modules.h"

#include <array>

#include <gtest/gtest.h>

namespace knap::needed_modules_test {
namespace {

bool always(int /*layer*/) {
    return true;
}
bool never(int /*layer*/) {
    return false;
}

TEST(WholeModules, ReachToTheLastAttention) {
    const ModuleRange range{.exit_layer = 4};
    EXPECT_EQ(count_whole_modules(range, always), 7);
    EXPECT_EQ(count_whole_modules(range, [](int layer) { return layer < 2; }), 3);
    EXPECT_EQ(count_whole_modules(range, never), 0);
}

TEST(WholeModules, ReachToTheLastCapture) {
    const std::array captures{1, 6};
    const ModuleRange range{.exit_layer = 4, .captures = captures};
    EXPECT_EQ(count_whole_modules(range, [](int layer) { return layer < 2; }), 6);
    EXPECT_EQ(count_whole_modules(range, always), 7);
}

TEST(WholeModules, AreThoseBeforeTheFirstLayerAtLeast) {
    EXPECT_EQ(count_whole_modules({.entry_layer = 2, .exit_layer = 4}, never), 4);
}

TEST(ReadModules, EndBeforeTheLastAttention) {
    const ModuleRange range{.entry_layer = 1, .exit_layer = 4};
    EXPECT_EQ(count_read_modules(range, always), 6);
    EXPECT_EQ(count_read_modules(range, [](int layer) { return layer < 3; }), 4);
    EXPECT_EQ(count_read_modules(range, never), 0);
}

TEST(ReadModules, ReachToTheLastCapture) {
    const std::array captures{3, 8};
    const ModuleRange range{.exit_layer = 4, .captures = captures};
    EXPECT_EQ(count_read_modules(range, always), 8);
}

}  // namespace
}  // namespace knap::needed_modules_test
