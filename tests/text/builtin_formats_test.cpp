#include "text/builtin_formats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::builtin_formats_test {
namespace {

TEST(BuiltinFormats, NamesWhatATemplateWrites) {
    EXPECT_THAT(builtin_formats(), testing::IsSupersetOf({"chatml", "gemma", "llama3"}));
    EXPECT_EQ(format_name("{{'<|start_header_id|>' + role + '<|end_header_id|>'}}"), "llama3");
    EXPECT_EQ(format_name("{{'<|im_start|>' + role}}"), "chatml");
    EXPECT_EQ(format_name("{{ messages }}"), "jinja");
    EXPECT_EQ(format_name(""), "");
}

}  // namespace
}  // namespace knap::builtin_formats_test
