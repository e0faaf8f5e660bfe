// Every kind of pass on a GPU, against the CPU.
#include <optional>
#include <ostream>

#include <gtest/gtest.h>

#include "model/row_invariance.h"
#include "support/device_agreement.h"
#include "support/gpu.h"
#include "support/tiny_model.h"

namespace knap::test::forward_gpu_test {
namespace {

struct GpuCase {
    const char* shape;
    const char* type;
    int capacity;
    std::optional<AttentionPath> path{};
};

void PrintTo(const GpuCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type << '/' << c.capacity << '/'
         << (c.path ? to_string(*c.path) : "auto");
}

class ForwardOnGpu : public ::testing::TestWithParam<GpuCase> {};

TEST_P(ForwardOnGpu, AgreesWithTheCpu) {
    KNAP_SKIP_WITHOUT_GPU();
    const GpuCase& c = GetParam();
    for (const PassAgreement& agreement : compare_with_cpu(
             tiny_model(c.shape, c.type), gpu(), {.capacity = c.capacity, .path = c.path})) {
        EXPECT_LE(agreement.error, agreement.bound) << agreement.pass;
        RecordProperty(agreement.pass, std::to_string(agreement.error));
    }
}

class OwnKernelsOnGpu : public ::testing::TestWithParam<GpuCase> {};

TEST_P(OwnKernelsOnGpu, AgreeWithTheCpu) {
    KNAP_SKIP_WITHOUT_GPU();
    const GpuCase& c = GetParam();
    for (const PassAgreement& agreement :
         compare_with_cpu(tiny_model(c.shape, c.type), gpu(), {.capacity = c.capacity},
                          AttentionPath::folded, Kernels::own)) {
        EXPECT_LE(agreement.error, agreement.bound) << agreement.pass;
    }
}

INSTANTIATE_TEST_SUITE_P(Models,
                         OwnKernelsOnGpu,
                         ::testing::Values(GpuCase{"small-llama", "Q4_0", 1024},
                                           GpuCase{"small-llama", "Q4_1", 1024},
                                           GpuCase{"small-llama", "Q4_K", 1024},
                                           GpuCase{"small-qwen3", "Q6_K", 1024},
                                           GpuCase{"small-qwen3", "Q8_0", 16896},
                                           GpuCase{"small-llama", "F16", 1024},
                                           GpuCase{"small-qwen3", "BF16", 16896},
                                           GpuCase{"small-granite", "Q8_0", 1024},
                                           GpuCase{"small-mistral3", "Q8_0", 1024},
                                           GpuCase{"small-phi", "Q8_0", 1024},
                                           GpuCase{"small-smollm3", "Q8_0", 1024},
                                           GpuCase{"small-qwen3vl", "Q8_0", 1024},
                                           GpuCase{"small-hunyuan-dense", "Q8_0", 1024},
                                           GpuCase{"small-gemma2", "Q8_0", 1024},
                                           GpuCase{"small-gemma3", "Q8_0", 16896},
                                           GpuCase{"small-olmo2", "Q8_0", 1024},
                                           GpuCase{"small-glm4", "Q8_0", 1024},
                                           GpuCase{"small-exaone4", "Q8_0", 1024}));

class BitsOnGpu : public ::testing::TestWithParam<GpuCase> {};

TEST_P(BitsOnGpu, OfFewRowsAreThoseOfSingleOnes) {
    KNAP_SKIP_WITHOUT_GPU();
    const GpuCase& c = GetParam();
    EXPECT_EQ(
        find_changed_bits(tiny_model(c.shape, c.type), gpu(),
                          {.capacity = c.capacity,
                           .exact_rows = row_invariant_rows(GGML_TYPE_Q8_0, WeightLayout::cuda)}),
        "");
}

INSTANTIATE_TEST_SUITE_P(Models,
                         BitsOnGpu,
                         ::testing::Values(GpuCase{"small-llama", "Q8_0", 1024},
                                           GpuCase{"small-llama", "Q4_0", 1024},
                                           GpuCase{"small-llama", "Q4_1", 16896},
                                           GpuCase{"small-qwen3", "Q4_K", 1024},
                                           GpuCase{"small-qwen3", "Q6_K", 16896},
                                           GpuCase{"small-llama", "Q5_K", 1024}));

constexpr auto kFolded = AttentionPath::folded;

// Heads of 16 have no flash attention there; contexts from 8192 on are where single rows are
// padded. Tensor cores take 16-bit factors also of F32 weights; quantised types round activations
// to eight bits on both sides, at other places. PassAgreement::bound allows for both.
INSTANTIATE_TEST_SUITE_P(Models,
                         ForwardOnGpu,
                         ::testing::Values(GpuCase{"small-llama", "F32", 1024},
                                           GpuCase{"small-llama", "F16", 1024},
                                           GpuCase{"small-qwen3", "F16", 1024},
                                           GpuCase{"small-llama", "Q8_0", 1024},
                                           GpuCase{"small-llama", "Q4_0", 1024},
                                           GpuCase{"small-llama", "Q4_1", 1024},
                                           GpuCase{"small-llama", "Q4_K", 1024},
                                           GpuCase{"small-llama", "Q6_K", 1024},
                                           GpuCase{"small-llama", "F16", 16896},
                                           GpuCase{"small-qwen3", "Q8_0", 16896},
                                           GpuCase{"small-llama", "F16", 16896, kFolded},
                                           GpuCase{"small-qwen3", "Q8_0", 1024, kFolded},
                                           GpuCase{"tiny-llama", "F16", 1024},
                                           GpuCase{"tiny-mha", "Q8_0", 1024},
                                           // Experts go through ggml.
                                           GpuCase{"small-qwen3moe", "F16", 1024},
                                           GpuCase{"small-qwen3moe", "Q8_0", 16896},
                                           GpuCase{"small-qwen3moe", "Q4_K", 1024},
                                           GpuCase{"small-gpt-oss", "F16", 1024},
                                           GpuCase{"small-gpt-oss", "MXFP4", 1024},
                                           GpuCase{"small-gpt-oss", "Q8_0", 1024, kFolded},
                                           GpuCase{"small-granitemoe", "Q8_0", 1024},
                                           GpuCase{"small-granitemoe", "Q4_K", 1024}));

}  // namespace
}  // namespace knap::test::forward_gpu_test
