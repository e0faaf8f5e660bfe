#include "runtime/bit_check.h"

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::bit_check_test {
namespace {

bool keeps_bits_with(const char* type) {
    LoadedModel model(tiny_model("small-llama", type));
    ForwardRig rig(model, {.n_ubatch = 4});
    return keeps_bits(rig.forward, 4);
}

// On the CPU with ggml's kernels (docs/ggml-facts.md).
TEST(BitCheck, DetectsWeightsThatAreNotBatchInvariant) {
    EXPECT_TRUE(keeps_bits_with("Q8_0"));
    EXPECT_TRUE(keeps_bits_with("Q4_K"));
    EXPECT_FALSE(keeps_bits_with("F16"));
}

}  // namespace
}  // namespace knap::test::bit_check_test
