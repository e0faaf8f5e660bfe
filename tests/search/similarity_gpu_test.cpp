// Searches that keep their streams on a GPU find the same plans as searches that copy them through
// host memory.
#include <gtest/gtest.h>

#include "support/gpu.h"
#include "support/search_agreement.h"
#include "support/tiny_model.h"

namespace knap::test::similarity_gpu_test {
namespace {

class SearchOnGpu : public ::testing::TestWithParam<const char*> {};

TEST_P(SearchOnGpu, FindsTheSamePlansAsWithStreamsInHostMemory) {
    KNAP_SKIP_WITHOUT_GPU();
    SearchRig rig({.model = tiny_model("small-llama", GetParam()), .device = gpu()});
    const DeviceSearch carried = search_on_device(rig, 16, Streams::carried);
    EXPECT_FALSE(carried.plans.empty());
    const DeviceSearch collected = search_on_device(rig, 16, Streams::collected);
    expect_same(collected, carried);
    expect_same(search_on_device(rig, 16, Streams::brought), carried);
    EXPECT_LT(collected.bytes_read, carried.bytes_read / 50);
}

INSTANTIATE_TEST_SUITE_P(Types, SearchOnGpu, ::testing::Values("F16", "Q8_0", "Q4_K"));

}  // namespace
}  // namespace knap::test::similarity_gpu_test
