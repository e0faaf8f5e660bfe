// Every kind of pass on a device that has memory of its own, against the CPU.
#include "support/remote_device.h"

#include <gtest/gtest.h>

#include "support/device_agreement.h"
#include "support/tiny_model.h"

namespace knap::test::remote_device_test {
namespace {

struct RemoteCase {
    const char* shape;
    const char* type;
    double bound;  // of the relative error
    AttentionPath path = AttentionPath::flash;
    int exact_rows = 0;
};

void PrintTo(const RemoteCase& c, std::ostream* out) {
    *out << c.shape << '/' << c.type << '/' << to_string(c.path) << '/' << c.exact_rows;
}

class RemoteDevice : public ::testing::TestWithParam<RemoteCase> {};

TEST_P(RemoteDevice, AgreesWithTheCpu) {
    const auto& [shape, type, bound, path, exact_rows] = GetParam();
    for (const PassAgreement& agreement : compare_with_cpu(
             tiny_model(shape, type), remote_device(), {.path = path, .exact_rows = exact_rows})) {
        EXPECT_LT(agreement.error, bound) << agreement.pass;
    }
}

constexpr auto kFlash = AttentionPath::flash;
constexpr auto kFolded = AttentionPath::folded;

// Flash attention of the CPU against its products, which it sums in half precision; or the same.
INSTANTIATE_TEST_SUITE_P(Models,
                         RemoteDevice,
                         ::testing::Values(RemoteCase{"tiny-llama", "F32", 0.01},
                                           RemoteCase{"tiny-qwen3", "F16", 0.01},
                                           RemoteCase{"tiny-mha", "F32", 0.01},
                                           RemoteCase{"tiny-llama", "Q8_0", 0.05},
                                           RemoteCase{"tiny-qwen3", "F32", 0.01, kFlash, 4},
                                           RemoteCase{"tiny-llama", "F32", 1e-6, kFolded},
                                           RemoteCase{"tiny-mha", "Q8_0", 1e-6, kFolded}));

}  // namespace
}  // namespace knap::test::remote_device_test
