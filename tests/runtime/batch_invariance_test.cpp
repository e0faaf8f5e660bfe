#include "runtime/batch_invariance.h"

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::batch_invariance_test {
namespace {

bool is_invariant_with(const char* type) {
    LoadedModel model(tiny_model("small-llama", type));
    ForwardRig rig(model, {.n_ubatch = 4});
    return is_batch_invariant(rig.forward, 4);
}

// On the CPU with ggml's kernels (docs/ggml-facts.md).
TEST(BatchInvariance, DetectsWeightsThatAreNotBatchInvariant) {
    EXPECT_TRUE(is_invariant_with("Q8_0"));
    EXPECT_TRUE(is_invariant_with("Q4_K"));
    EXPECT_FALSE(is_invariant_with("F16"));
}

}  // namespace
}  // namespace knap::test::batch_invariance_test
