// --device and --list-devices.
#include "cli/command.h"

namespace knap::devices_test {
namespace {

using testing::HasSubstr;

TEST(Devices, AreListedWithTheirMemory) {
    for (const char* command : {"run", "bench", "info"}) {
        const auto result = run_knap({command, "--list-devices"});
        EXPECT_EQ(result.exit_code, 0) << result.error;
        EXPECT_THAT(result.output, HasSubstr("CPU\t"));
        EXPECT_THAT(result.output, HasSubstr(" GiB free\n"));
    }
}

TEST(Devices, AreChosenByName) {
    const auto result = run_knap(
        {"run", "-m", tiny_model().string(), "-p", "a", "-n", "2", "--json", "--device", "cpu"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    const auto object = nlohmann::json::parse(result.output);
    EXPECT_EQ(object["device"], "CPU");
    EXPECT_EQ(object["cuda_graphs"]["captured"], 0);
    EXPECT_EQ(object["cuda_graphs"]["reset"], 0);
}

TEST(Devices, UnknownNameIsRefused) {
    const auto result =
        run_knap({"run", "-m", tiny_model().string(), "-p", "a", "--device", "CUDA9"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.error,
                HasSubstr("knap: error: --device: expected one of CPU; found 'CUDA9'\n"));
}

}  // namespace
}  // namespace knap::devices_test
