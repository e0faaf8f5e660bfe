#include "runtime/layer_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::layer_devices_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;

DeviceEntry device(const char* name, std::size_t free_bytes) {
    return {.device = nullptr,
            .name = name,
            .description = "",
            .is_cpu = std::string_view(name) == "CPU",
            .free_bytes = free_bytes};
}

const KnownDevices kCpu{.local = {device("CPU", 64)}, .remote = {}};
const KnownDevices kGpus{.local = {device("CUDA0", 30), device("CUDA1", 10), device("CPU", 64)},
                         .remote = {}};
const KnownDevices kWorkers{.local = {device("CPU", 64)},
                            .remote = {device("RPC0", 1), device("RPC1", 100)}};

std::vector<std::pair<std::string, int>> chosen(const RuntimeConfig& config,
                                                const KnownDevices& known,
                                                int n_layers = 20) {
    std::vector<std::pair<std::string, int>> parts;
    for (const DevicePart& part : choose_devices(config, known, n_layers)) {
        parts.emplace_back(part.device.name, part.n_layers);
    }
    return parts;
}

TEST(LayerDevices, AreTheFirstGpuOrTheCpu) {
    EXPECT_THAT(chosen({}, kCpu), ElementsAre(Pair("CPU", 20)));
    EXPECT_THAT(chosen({}, kGpus), ElementsAre(Pair("CUDA0", 20)));
    EXPECT_THAT(chosen({.devices = {"cpu"}}, kGpus), ElementsAre(Pair("CPU", 20)));
}

TEST(LayerDevices, SeveralShareLayersByTheirFreeMemory) {
    EXPECT_THAT(chosen({.devices = {"CUDA0", "CUDA1"}}, kGpus),
                ElementsAre(Pair("CUDA0", 15), Pair("CUDA1", 5)));
    EXPECT_THAT(chosen({.devices = {"CUDA1", "CUDA0"}}, kGpus),
                ElementsAre(Pair("CUDA1", 5), Pair("CUDA0", 15)));
    EXPECT_THAT(chosen({.devices = {"CPU", "CPU"}}, kCpu, 3),
                ElementsAre(Pair("CPU", 2), Pair("CPU", 1)));
    EXPECT_THAT(chosen({.devices = {"CUDA1", "CUDA0"}}, kGpus, 1), ElementsAre(Pair("CUDA0", 1)));
}

TEST(LayerDevices, FirstLayersStayOnTheCpuWhenFewerAreOffloaded) {
    EXPECT_THAT(chosen({.n_gpu_layers = 8}, kGpus), ElementsAre(Pair("CPU", 12), Pair("CUDA0", 8)));
    EXPECT_THAT(chosen({.devices = {"CUDA0", "CUDA1"}, .n_gpu_layers = 8}, kGpus),
                ElementsAre(Pair("CPU", 12), Pair("CUDA0", 6), Pair("CUDA1", 2)));
    EXPECT_THAT(chosen({.n_gpu_layers = 0}, kGpus), ElementsAre(Pair("CPU", 20)));
    EXPECT_THAT(chosen({.n_gpu_layers = 99}, kGpus), ElementsAre(Pair("CUDA0", 20)));
    EXPECT_THAT(chosen({.n_gpu_layers = 8}, kCpu), ElementsAre(Pair("CPU", 20)));
}

TEST(LayerDevices, WorkersShareLayersEvenly) {
    EXPECT_THAT(chosen({}, kWorkers), ElementsAre(Pair("RPC0", 10), Pair("RPC1", 10)));
    EXPECT_THAT(chosen({.n_gpu_layers = 4}, kWorkers),
                ElementsAre(Pair("CPU", 16), Pair("RPC0", 2), Pair("RPC1", 2)));
    EXPECT_THAT(chosen({.devices = {"RPC1"}}, kWorkers), ElementsAre(Pair("RPC1", 20)));
    EXPECT_THAT(chosen({.devices = {"CPU", "RPC1"}}, kWorkers),
                ElementsAre(Pair("CPU", 10), Pair("RPC1", 10)));
}

TEST(LayerDevices, UnknownNameErrorListsTheKnownOnes) {
    for (const char* name : {"CUDA7", "", "CUDA0,CUDA1"}) {
        EXPECT_THAT(
            [&] { chosen({.devices = {name}}, kGpus); },
            ThrowsMessage<Error>(HasSubstr("`.devices`: expected one of CUDA0, CUDA1, CPU")))
            << name;
    }
}

}  // namespace
}  // namespace knap::layer_devices_test
