#include "runtime/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/backend.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::device_memory_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr std::size_t kMib = 1 << 20;

DeviceEntry device_with(std::size_t free_bytes) {
    return {.device = nullptr, .name = "CUDA0", .description = "a GPU", .free_bytes = free_bytes};
}

std::size_t bytes_of_tensors(const GgufFile& file) {
    std::size_t n_bytes = 0;
    for (const TensorInfo& tensor : file.tensors()) {
        n_bytes += tensor.n_bytes;
    }
    return n_bytes;
}

constexpr DeviceNeed kNeed{.weight_bytes = 1024 * kMib,
                           .cache_row_bytes = kMib,
                           .scratch_bytes = 512 * kMib,
                           .n_ctx = 2048};

TEST(DeviceMemory, IsTheSumOfItsParts) {
    EXPECT_EQ(kNeed.total(), (1024 + 512 + 2048) * kMib);
    EXPECT_NO_THROW(check_fits(device_with(kNeed.total()), kNeed));
}

TEST(DeviceMemory, ErrorSuggestsAContextThatFits) {
    EXPECT_THAT([] { check_fits(device_with(kNeed.total() - 1), kNeed); },
                ThrowsMessage<Error>(AllOf(
                    HasSubstr("device CUDA0: expected room for 1.00 GiB of weights, 2.00 GiB of "
                              "cache (`.n_ctx` 2048) and 0.50 GiB of scratch, found 3.50 GiB free"),
                    HasSubstr("`.n_ctx` 1792 would fit"))));
}

TEST(DeviceMemory, ErrorSuggestsTheCpuWhenNoContextFits) {
    for (const std::size_t free_bytes : {std::size_t{0}, 1536 * kMib, 1600 * kMib}) {
        EXPECT_THAT([&] { check_fits(device_with(free_bytes), kNeed); },
                    ThrowsMessage<Error>(HasSubstr("`.devices` CPU")))
            << free_bytes;
    }
}

TEST(DeviceMemory, ErrorSuggestsHowManyLayersFit) {
    DeviceNeed need = kNeed;
    need.n_layers = 10;
    need.fixed_weight_bytes = 24 * kMib;
    // A layer takes 100 MiB of weights and 204.8 MiB of cache.
    EXPECT_THAT([&] { check_fits(device_with((24 + 512 + 1000) * kMib), need); },
                ThrowsMessage<Error>(HasSubstr("free; `.n_gpu_layers` 3 would fit")));
    EXPECT_THAT(
        [&] { check_fits(device_with((24 + 512 + 2000) * kMib), need); },
        ThrowsMessage<Error>(HasSubstr("free; `.n_ctx` 768 or `.n_gpu_layers` 6 would fit")));
    EXPECT_THAT([&] { check_fits(device_with((24 + 512 + 300) * kMib), need); },
                ThrowsMessage<Error>(HasSubstr("`.devices` CPU")));
}

TEST(DeviceMemory, CountsTheWeightsOfTheDevicesLayers) {
    const GgufFile file = GgufFile::open(tiny_model("tiny-llama", "F32"));
    Backend first(1);
    Backend second(1);
    const LayerMap whole(first, 4);
    const std::size_t all = stored_bytes(file, whole, whole.first());
    EXPECT_EQ(all, bytes_of_tensors(file));
    const std::size_t outside = stored_bytes_outside_layers(file, whole, whole.first());
    const std::vector<LayerCount> counts{{first, 1}, {second, 3}};
    const LayerMap split(counts);
    const std::size_t embedding = stored_bytes_outside_layers(file, split, split.first());
    EXPECT_EQ(embedding, file.find("token_embd.weight")->n_bytes);
    EXPECT_EQ(stored_bytes_outside_layers(file, split, split.last()), outside - embedding);
    EXPECT_EQ(stored_bytes(file, split, split.first()), embedding + (all - outside) / 4);
    EXPECT_EQ(stored_bytes(file, split, split.last()),
              outside - embedding + (all - outside) / 4 * 3);
}

TEST(DeviceMemory, TiedHeadOnAnotherDeviceCountsTheEmbeddingAgain) {
    test::TinyGguf tiny;
    tiny.remove_tensor("output.weight");
    const GgufFile file = GgufFile::open(test::write_tiny(tiny, "memory-tied.gguf"));
    Backend first(1);
    Backend second(1);
    const std::vector<LayerCount> counts{{first, 1}, {second, 1}};
    const LayerMap split(counts);
    const std::size_t embedding = file.find("token_embd.weight")->n_bytes;
    EXPECT_EQ(stored_bytes_outside_layers(file, split, split.last()),
              embedding + file.find("output_norm.weight")->n_bytes);
    const LayerMap whole(first, 2);
    EXPECT_EQ(stored_bytes(file, whole, whole.first()), bytes_of_tensors(file));
}

TEST(DeviceMemory, ScratchGrowsWithThePass) {
    const ModelConfig model{.n_embd = 4096, .n_ff = 14336, .n_vocab = 128256};
    EXPECT_GT(estimate_scratch(model, 512, 8192), estimate_scratch(model, 64, 8192));
    EXPECT_GT(estimate_scratch(model, 512, 131072), estimate_scratch(model, 512, 8192));
}

}  // namespace
}  // namespace knap::device_memory_test
