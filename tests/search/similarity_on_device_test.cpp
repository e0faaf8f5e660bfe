// Searches that keep their streams on a device find the same plans as searches that copy them
// through host memory.
#include <gtest/gtest.h>

#include "search/matchness.h"
#include "support/remote_device.h"
#include "support/search_agreement.h"
#include "support/tiny_model.h"

namespace knap::test::similarity_on_device_test {
namespace {

constexpr int kRows = 8;

struct DeviceRig : SearchRig {
    explicit DeviceRig(const char* shape = "tiny-llama", const ForwardOptions& forward = {})
        : SearchRig({.model = tiny_model(shape), .forward = forward, .device = remote_device()}) {}
};

class SearchOnDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(SearchOnDevice, FindsTheSamePlansAsWithStreamsInHostMemory) {
    DeviceRig rig(GetParam());
    const DeviceSearch carried = search_on_device(rig, kRows, Streams::carried);
    EXPECT_GT(carried.plans.size(), 4u);
    expect_same(search_on_device(rig, kRows, Streams::brought), carried);
    expect_same(search_on_device(rig, kRows, Streams::collected), carried);
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         SearchOnDevice,
                         ::testing::Values("tiny-llama", "tiny-qwen3", "tiny-mha"));

TEST(SearchesOnDevice, AreSplitIntoPassesThatFit) {
    DeviceRig rig("tiny-llama", {.n_ubatch = 20});
    expect_same(search_on_device(rig, kRows, Streams::collected),
                search_on_device(rig, kRows, Streams::carried));
}

// One score for every row that went through a module, and fewer for skipped ones.
TEST(SearchesOnDevice, ReadBackOnlyScores) {
    DeviceRig rig;
    const DeviceSearch found = search_on_device(rig, kRows, Streams::collected);
    const auto n_rows = static_cast<std::size_t>(found.n_module_rows);
    EXPECT_GE(found.bytes_read, n_rows * sizeof(float));
    EXPECT_LE(found.bytes_read, 2 * n_rows * sizeof(float));
    const std::size_t row_bytes = static_cast<std::size_t>(rig.model.config.n_embd) * sizeof(float);
    EXPECT_EQ(search_on_device(rig, kRows, Streams::carried).bytes_read, n_rows * row_bytes);
}

TEST(SearchesOnDevice, ReuseTheSameMemory) {
    DeviceRig rig;
    const std::size_t before = rig.rig.forward.statistics().scratch_bytes;
    const DeviceSearch first = search_on_device(rig, kRows, Streams::collected);
    const std::size_t after = rig.rig.forward.statistics().scratch_bytes;
    EXPECT_GT(after, before);
    expect_same(search_on_device(rig, kRows, Streams::collected), first);
    expect_same(search_on_device(rig, kRows, Streams::brought), first);
    search_on_device(rig, kRows / 2, Streams::collected);
    EXPECT_EQ(rig.rig.forward.statistics().scratch_bytes, after);
}

TEST(SearchesOnDevice, UseHostMemoryWithoutABank) {
    DeviceRig rig;
    const DeviceSearch carried = search_on_device(rig, kRows, Streams::carried);
    const auto lent = rig.rig.forward.borrow_bank(1);
    ASSERT_NE(lent, nullptr);
    for (const Streams streams : {Streams::brought, Streams::collected}) {
        const DeviceSearch found = search_on_device(rig, kRows, streams);
        expect_same(found, carried);
        EXPECT_EQ(found.bytes_read, carried.bytes_read);
    }
}

TEST(SearchesOnDevice, EndWhereverTheyAreCancelled) {
    DeviceRig rig;
    const DeviceSearch whole = search_on_device(rig, kRows, Streams::collected);
    const auto bytes = rig.rig.cache_bytes();
    for (const Streams streams : {Streams::brought, Streams::collected}) {
        for (const int n_passes : {0, 1, 5, 12, 20}) {
            int n_left = n_passes;
            rig.model.backend.set_abort([&] { return n_left-- <= 0; });
            const DeviceSearch found = search_on_device(rig, kRows, streams);
            rig.model.backend.set_abort({});
            EXPECT_TRUE(found.is_cancelled) << n_passes;
            EXPECT_TRUE(found.plans.empty()) << n_passes;
        }
        expect_same(search_on_device(rig, kRows, streams), whole);
    }
    EXPECT_EQ(rig.rig.cache_bytes(), bytes);
}

TEST(MatchnessOnDevice, EqualsThatOfStreamsInHostMemory) {
    DeviceRig rig;
    ModulePlan plan(rig.n_layers());
    plan.set(1, Module::mlp, Level::skip);
    // More rows than go through the head at once.
    const auto text = std::span(rig.text).last(50);
    const auto match = [&] {
        return matchness(rig.rig.forward, rig.rig.cache, plan, text,
                         static_cast<int>(rig.text.size() - text.size()));
    };
    const std::size_t start = rig.rig.forward.statistics().bytes_read;
    const auto found = match();
    EXPECT_EQ(rig.rig.forward.statistics().bytes_read - start, 49 * sizeof(Token));
    const auto lent = rig.rig.forward.borrow_bank(1);
    ASSERT_TRUE(found);
    EXPECT_EQ(found, match());
}

}  // namespace
}  // namespace knap::test::similarity_on_device_test
