// With knap's kernels all rows are bit-identical to single-row passes, and texts are plain
// decoding's. With ggml's that holds for few rows, where weights are quantised. Elsewhere, and in
// trees, texts may diverge where rounding can decide, and nowhere else. lossless_remote_test.cpp
// runs the same checks on a worker.
#include <ostream>

#include <gtest/gtest.h>

#include "support/gpu.h"
#include "support/lossless_agreement.h"
#include "support/tiny_model.h"

namespace knap::test::lossless_gpu_test {
namespace {

struct LosslessCase {
    const char* type;
    Kernels kernels = Kernels::ggml;
    bool exact = true;
    bool has_exact_chains = true;
    const char* shape = "small-llama";
};

void PrintTo(const LosslessCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type << (c.kernels == Kernels::own ? "/own" : "/ggml")
         << (c.exact ? "" : "/any rows");
}

class LosslessOnGpu : public ::testing::TestWithParam<LosslessCase> {};

TEST_P(LosslessOnGpu, EveryStrategyWritesPlainDecodingsText) {
    KNAP_SKIP_WITHOUT_GPU();
    expect_lossless({.model_path = tiny_model(GetParam().shape, GetParam().type),
                     .n_ctx = 512,
                     .n_threads = 1,
                     .devices = {ggml_backend_dev_name(gpu())},
                     .exact = GetParam().exact,
                     .kernels = GetParam().kernels},
                    {.has_exact_chains = GetParam().has_exact_chains});
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    LosslessOnGpu,
    ::testing::Values(
        LosslessCase{.type = "F16", .has_exact_chains = false},
        LosslessCase{.type = "Q8_0"},
        LosslessCase{.type = "Q4_0"},
        LosslessCase{.type = "Q4_K"},
        LosslessCase{.type = "Q4_0", .exact = false, .has_exact_chains = false},
        LosslessCase{.type = "F16", .kernels = Kernels::own},
        LosslessCase{.type = "Q8_0", .kernels = Kernels::own},
        LosslessCase{.type = "Q4_0", .kernels = Kernels::own},
        LosslessCase{.type = "Q4_K", .kernels = Kernels::own},
        LosslessCase{.type = "Q4_0", .kernels = Kernels::own, .exact = false},
        LosslessCase{.type = "Q8_0", .kernels = Kernels::own, .shape = "small-mistral3"},
        LosslessCase{.type = "Q8_0", .kernels = Kernels::own, .shape = "small-gemma3"},
        LosslessCase{.type = "Q4_0", .kernels = Kernels::own, .shape = "small-olmo2"},
        // Experts go through ggml, whose products by expert are exact for single rows only.
        LosslessCase{.type = "Q8_0", .has_exact_chains = false, .shape = "small-qwen3moe"},
        LosslessCase{.type = "Q4_K", .has_exact_chains = false, .shape = "small-qwen3moe"},
        LosslessCase{.type = "MXFP4", .has_exact_chains = false, .shape = "small-gpt-oss"},
        LosslessCase{.type = "Q8_0", .has_exact_chains = false, .shape = "small-granitemoe"}));

}  // namespace
}  // namespace knap::test::lossless_gpu_test
