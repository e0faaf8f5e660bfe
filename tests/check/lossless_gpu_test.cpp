// On a GPU a row's bits depend on the rows beside it, so texts may part where the whole model
// hardly preferred its choice to the second one, and nowhere else.
#include <iostream>

#include <gtest/gtest.h>

#include "check/lossless_check.h"
#include "support/gpu.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test {
namespace {

class LosslessOnGpu : public ::testing::TestWithParam<const char*> {};

TEST_P(LosslessOnGpu, EveryStrategyWritesPlainDecodingsText) {
    KNAP_SKIP_WITHOUT_GPU();
    Engine engine({.model_path = tiny_model("small-llama", GetParam()),
                   .n_ctx = 512,
                   .n_threads = 1,
                   .device = ggml_backend_dev_name(gpu())});
    std::vector<CheckPrompt> prompts;
    for (const unsigned seed : {1U, 2U, 3U}) {
        prompts.push_back({.id = std::to_string(seed),
                           .tokens = random_tokens(20 + 90 * static_cast<int>(seed), 256, seed)});
    }
    const auto reports =
        check_lossless(engine, prompts, {.ways = drafting_ways(engine), .n_predict = 64}, {});
    ASSERT_TRUE(reports.has_value());
    std::size_t n_near_ties = 0;
    int n_drafted = 0;
    for (const LosslessReport& report : *reports) {
        EXPECT_TRUE(report.mismatches.empty()) << report.way.name;
        n_near_ties += report.near_ties.size();
        n_drafted += report.n_drafted;
    }
    EXPECT_GT(n_drafted, 0);
    std::cout << GetParam() << ": " << reports->size() << " ways, " << n_near_ties
              << " texts part at a near-tie\n";
}

INSTANTIATE_TEST_SUITE_P(Types, LosslessOnGpu, ::testing::Values("F16", "Q8_0", "Q4_0", "Q4_K"));

}  // namespace
}  // namespace knap::test
