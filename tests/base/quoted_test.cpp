#include "base/quoted.h"

#include <gtest/gtest.h>

namespace knap::quoted_test {
namespace {

TEST(Quoted, KeepsPrintableText) {
    EXPECT_EQ(printable("blk.0.attn_q.weight ~"), "blk.0.attn_q.weight ~");
    EXPECT_EQ(in_quotes("llama"), "'llama'");
}

TEST(Quoted, ReplacesBytesThatATerminalActsOn) {
    EXPECT_EQ(printable(std::string_view("a\nb\x1b[2J\0c\x7f\xc3\xa9", 12)), "a?b?[2J?c???");
}

TEST(Quoted, CutsLongText) {
    EXPECT_EQ(printable("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace knap::quoted_test
