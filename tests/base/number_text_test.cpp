#include "base/number_text.h"

#include <gtest/gtest.h>

namespace knap::number_text_test {
namespace {

TEST(NumberText, HasTheRequestedDecimals) {
    EXPECT_EQ(format_fixed(3.1, 2), "3.10");
    EXPECT_EQ(format_fixed(0.05, 1), "0.1");
    EXPECT_EQ(format_fixed(-2.5e6, 0), "-2500000");
}

TEST(NumberText, CountsGibibytesOf1024Mebibytes) {
    EXPECT_EQ(format_gib(0, 1), "0.0 GiB");
    EXPECT_EQ(format_gib(std::uint64_t{5} << 29, 1), "2.5 GiB");
    EXPECT_EQ(format_gib(std::uint64_t{1} << 40, 2), "1024.00 GiB");
}

}  // namespace
}  // namespace knap::number_text_test
