#include "text/builtin_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::builtin_formats_test {
namespace {

TEST(BuiltinFormats, AreToldByWhatTheyWrite) {
    EXPECT_THAT(builtin_formats(), testing::IsSupersetOf({"chatml", "gemma", "llama3"}));
    const std::string without_system =
        "<|im_start|>user\n Hello <|im_end|>\n"
        "<|im_start|>assistant\n Hi <|im_end|>\n"
        "<|im_start|>user\n Why? <|im_end|>\n"
        "<|im_start|>assistant\n";
    EXPECT_EQ(format_of(without_system, false), "chatml");
    EXPECT_EQ(format_of("<|im_start|>system\n Be brief. <|im_end|>\n" + without_system, true),
              "chatml");
    EXPECT_EQ(format_of(without_system, true), std::nullopt);
    EXPECT_EQ(format_of("", true), std::nullopt);
}

}  // namespace
}  // namespace knap::builtin_formats_test
