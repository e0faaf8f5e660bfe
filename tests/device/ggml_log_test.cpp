#include "device/ggml_log.h"

#include "gguf.h"

#include <gtest/gtest.h>

namespace knap {
namespace {

void provoke_error() {
    const char bytes[] = "not a GGUF file";
    EXPECT_EQ(gguf_init_from_buffer(bytes, sizeof(bytes), {true, nullptr}), nullptr);
}

TEST(GgmlErrorCapture, GivesTheFirstErrorWithoutTheFunction) {
    const GgmlErrorCapture errors;
    provoke_error();
    EXPECT_EQ(errors.reason(), "invalid magic characters: 'not ', expected 'GGUF'");
}

TEST(GgmlErrorCapture, SaysWhenThereWasNoError) {
    EXPECT_EQ(GgmlErrorCapture().reason(), "no reason given");
}

TEST(GgmlErrorCapture, TheInnermostHears) {
    const GgmlErrorCapture outer;
    {
        const GgmlErrorCapture inner;
        provoke_error();
        EXPECT_NE(inner.reason(), "no reason given");
    }
    EXPECT_EQ(outer.reason(), "no reason given");
    provoke_error();
    EXPECT_NE(outer.reason(), "no reason given");
}

}  // namespace
}  // namespace knap
