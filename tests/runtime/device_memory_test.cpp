#include "runtime/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t kMib = 1 << 20;

DeviceEntry device_with(std::size_t free_bytes) {
    return {.device = nullptr, .name = "CUDA0", .description = "a GPU", .free_bytes = free_bytes};
}

constexpr DeviceNeed kNeed{.weight_bytes = 1024 * kMib,
                           .cache_row_bytes = kMib,
                           .scratch_bytes = 512 * kMib,
                           .n_ctx = 2048};

TEST(DeviceMemory, IsTheSumOfItsParts) {
    EXPECT_EQ(kNeed.total(), (1024 + 512 + 2048) * kMib);
    EXPECT_NO_THROW(check_fits(device_with(kNeed.total()), kNeed));
}

TEST(DeviceMemory, SaysWhichContextWouldFit) {
    EXPECT_THAT([] { check_fits(device_with(kNeed.total() - 1), kNeed); },
                ThrowsMessage<Error>(AllOf(
                    HasSubstr("device CUDA0: expected room for 1.00 GiB of weights, 2.00 GiB of "
                              "cache (-c 2048) and 0.50 GiB of scratch, found 3.50 GiB free"),
                    HasSubstr("-c 1792 would fit"))));
}

TEST(DeviceMemory, SaysWhenNoContextFits) {
    for (const std::size_t free_bytes : {std::size_t{0}, 1536 * kMib, 1600 * kMib}) {
        EXPECT_THAT([&] { check_fits(device_with(free_bytes), kNeed); },
                    ThrowsMessage<Error>(HasSubstr("--device CPU")))
            << free_bytes;
    }
}

TEST(DeviceMemory, ScratchGrowsWithThePass) {
    const ModelConfig model{.n_embd = 4096, .n_ff = 14336, .n_vocab = 128256};
    EXPECT_GT(estimate_scratch(model, 512, 8192), estimate_scratch(model, 64, 8192));
    EXPECT_GT(estimate_scratch(model, 512, 131072), estimate_scratch(model, 512, 8192));
}

}  // namespace
}  // namespace knap
