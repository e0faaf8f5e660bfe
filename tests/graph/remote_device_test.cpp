// Compares every kind of pass on a device with its own memory with the CPU. The worker computes on
// the same CPU, so on the same attention path the two are bit-identical. Compared with another path
// its error has the same bound as a GPU's (forward_gpu_test.cpp).
#include "support/remote_device.h"

#include <gtest/gtest.h>

#include "support/device_agreement.h"
#include "support/tiny_model.h"

namespace knap::test::remote_device_test {
namespace {

constexpr auto kFlash = AttentionPath::flash;
constexpr auto kFolded = AttentionPath::folded;

struct RemoteCase {
    const char* shape;
    const char* type;
    AttentionPath path = kFlash;
    int exact_rows = 0;
};

void PrintTo(const RemoteCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type << '/' << to_string(c.path) << '/' << c.exact_rows;
}

class RemoteDevice : public ::testing::TestWithParam<RemoteCase> {};

TEST_P(RemoteDevice, AgreesWithTheCpu) {
    const auto& [shape, type, path, exact_rows] = GetParam();
    for (const PassAgreement& agreement : compare_with_cpu(
             tiny_model(shape, type), remote_device(), {.path = path, .exact_rows = exact_rows})) {
        EXPECT_LE(agreement.error, agreement.bound) << agreement.pass;
    }
}

TEST_P(RemoteDevice, IsBitIdenticalToTheCpuOnTheSamePath) {
    const auto& [shape, type, path, exact_rows] = GetParam();
    for (const PassAgreement& agreement :
         compare_with_cpu(tiny_model(shape, type), remote_device(),
                          {.path = path, .exact_rows = exact_rows}, path)) {
        // Flash attention on another device reads a window's sinks after its recent rows. Chains
        // are compared with passes of the same device, whose probabilities the host computes.
        const bool is_window = agreement.pass.find("windows") != std::string::npos;
        const bool is_chain = agreement.pass.starts_with("chain");
        if (!is_chain && (path == kFolded || !is_window)) {
            EXPECT_EQ(agreement.error, 0) << agreement.pass;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Models,
                         RemoteDevice,
                         ::testing::Values(RemoteCase{"tiny-llama", "F32"},
                                           RemoteCase{"tiny-qwen3", "F16"},
                                           RemoteCase{"tiny-mha", "F32"},
                                           RemoteCase{"tiny-llama", "Q8_0"},
                                           RemoteCase{"tiny-qwen3", "F32", kFlash, 4},
                                           RemoteCase{"tiny-llama", "F32", kFolded},
                                           RemoteCase{"tiny-mha", "Q8_0", kFolded}));

}  // namespace
}  // namespace knap::test::remote_device_test
