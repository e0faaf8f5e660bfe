#include "decode/chain_length.h"

#include <gtest/gtest.h>

namespace knap::chain_length_test {
namespace {

TEST(ChainLength, IsTheWholeDraftWhenNothingCanStopIt) {
    EXPECT_EQ(ChainLength().next(0, 7, /*may_stop_early=*/false), 7);
    EXPECT_EQ(ChainLength().next(5, 2, false), 2);
}

TEST(ChainLength, FollowsTheLengthOfDrafts) {
    ChainLength length;
    for (int i = 0; i < 50; ++i) {
        length.observe(6);
    }
    EXPECT_EQ(length.next(0, 16, true), 6);
    EXPECT_EQ(length.next(4, 12, true), 2);
    for (int i = 0; i < 50; ++i) {
        length.observe(1);
    }
    EXPECT_EQ(length.next(0, 16, true), 1);
}

TEST(ChainLength, IsAtLeastOneAndAtMostWhatIsLeft) {
    ChainLength length;
    for (int i = 0; i < 50; ++i) {
        length.observe(10);
    }
    EXPECT_EQ(length.next(0, 3, true), 3);
    EXPECT_EQ(length.next(30, 3, true), 1);
}

}  // namespace
}  // namespace knap::chain_length_test
