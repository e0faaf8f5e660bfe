// Every strategy on a device that is not batch-invariant: texts may diverge from plain decoding
// where rounding can decide, and nowhere else. Checks on a worker what lossless_gpu_test.cpp checks
// on a GPU.
#include <ostream>

#include <gtest/gtest.h>

#include "support/lossless_agreement.h"
#include "support/remote_device.h"
#include "support/tiny_model.h"

namespace knap::test::lossless_remote_test {
namespace {

class LosslessOnWorker : public ::testing::TestWithParam<const char*> {};

// Flash attention on a CPU sums in half precision, differently for several rows than for one.
TEST_P(LosslessOnWorker, EveryStrategyWritesPlainDecodingsText) {
    expect_lossless({.model_path = tiny_model("tiny-llama", GetParam()),
                     .n_ctx = 512,
                     .n_threads = 1,
                     .workers = {remote_worker()}},
                    {.has_exact_chains = false, .n_predict = 32});
}

INSTANTIATE_TEST_SUITE_P(Types, LosslessOnWorker, ::testing::Values("F32", "F16", "Q8_0", "Q4_0"));

}  // namespace
}  // namespace knap::test::lossless_remote_test
