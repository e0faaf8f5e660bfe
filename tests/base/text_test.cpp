#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::text_test {
namespace {

using testing::ElementsAre;

TEST(Split, ReturnsThePartsBetweenSeparators) {
    EXPECT_THAT(split("CUDA0,CPU", ','), ElementsAre("CUDA0", "CPU"));
    EXPECT_THAT(split("16+256", '+'), ElementsAre("16", "256"));
    EXPECT_THAT(split("a,b", '+'), ElementsAre("a,b"));
}

TEST(Split, KeepsEmptyParts) {
    EXPECT_THAT(split("", ','), ElementsAre(""));
    EXPECT_THAT(split(",", ','), ElementsAre("", ""));
    EXPECT_THAT(split(",a,,b,", ','), ElementsAre("", "a", "", "b", ""));
}

}  // namespace
}  // namespace knap::text_test
