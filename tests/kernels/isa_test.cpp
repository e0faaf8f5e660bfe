#include "kernels/isa.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/environment_variable.h"

namespace knap::test::isa_test {
namespace {

TEST(InstructionSets, AfterTheNamedOneAreNotUsed) {
    const EnvironmentVariable limit("KNAP_ISA", "plain");
    EXPECT_TRUE(may_use(Isa::plain));
    EXPECT_FALSE(may_use(Isa::avx2));
    EXPECT_FALSE(may_use(Isa::avx512));
}

TEST(InstructionSets, AreAllUsedWhenNoneIsNamed) {
    const EnvironmentVariable none("KNAP_ISA", "");
    const bool has_avx512 = may_use(Isa::avx512);
    const EnvironmentVariable limit("KNAP_ISA", "avx512");
    EXPECT_EQ(may_use(Isa::avx512), has_avx512);
}

TEST(InstructionSets, AmxHasToBeNamed) {
    const EnvironmentVariable none("KNAP_ISA", "");
    EXPECT_FALSE(may_use(Isa::amx));
}

TEST(InstructionSets, UnknownNamesAreRefused) {
    const EnvironmentVariable limit("KNAP_ISA", "sse");
    try {
        may_use(Isa::plain);
        FAIL();
    } catch (const Error& error) {
        EXPECT_STREQ(error.what(),
                     "KNAP_ISA: expected plain, neon, avx2, avxvnni, avx512 or amx, found sse");
    }
}

}  // namespace
}  // namespace knap::test::isa_test
