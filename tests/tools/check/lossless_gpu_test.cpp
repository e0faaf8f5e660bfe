// On a GPU few rows have the bits of one where weights are quantised, and texts are plain
// decoding's. Elsewhere, and in trees, they may part where the whole model hardly preferred its
// choice to the second one, and nowhere else.
#include <iostream>

#include <gtest/gtest.h>

#include "support/gpu.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"
#include "tools/check/lossless_check.h"

namespace knap::test::lossless_gpu_test {
namespace {

struct LosslessCase {
    const char* type;
    bool exact = true;
    bool has_near_ties = false;
};

void PrintTo(const LosslessCase& c, std::ostream* out) {
    *out << c.type << (c.exact ? "" : "/near-ties");
}

class LosslessOnGpu : public ::testing::TestWithParam<LosslessCase> {};

TEST_P(LosslessOnGpu, EveryStrategyWritesPlainDecodingsText) {
    KNAP_SKIP_WITHOUT_GPU();
    Engine engine({.model_path = tiny_model("small-llama", GetParam().type),
                   .n_ctx = 512,
                   .n_threads = 1,
                   .devices = {ggml_backend_dev_name(gpu())},
                   .exact = GetParam().exact});
    std::vector<CheckPrompt> prompts;
    for (const unsigned seed : {1U, 2U, 3U}) {
        prompts.push_back({.id = std::to_string(seed),
                           .tokens = random_tokens(20 + 90 * static_cast<int>(seed), 256, seed)});
    }
    const auto reports = check_lossless(
        engine, prompts, {.contenders = lossless_contenders(engine), .n_predict = 64}, {});
    ASSERT_TRUE(reports.has_value());
    std::size_t n_near_ties = 0;
    int n_drafted = 0;
    for (const LosslessReport& report : *reports) {
        EXPECT_TRUE(report.mismatches.empty()) << report.contender.name;
        const SpeculationOptions& options = report.contender.speculation;
        const bool has_trees = options.settings.contains("width") || options.strategy == "swift";
        EXPECT_TRUE(GetParam().has_near_ties || has_trees || report.near_ties.empty())
            << report.contender.name;
        n_near_ties += report.near_ties.size();
        n_drafted += report.n_drafted;
    }
    EXPECT_GT(n_drafted, 0);
    std::cout << GetParam().type << ": " << reports->size() << " contenders, " << n_near_ties
              << " texts part at a near-tie\n";
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    LosslessOnGpu,
    ::testing::Values(LosslessCase{.type = "F16", .has_near_ties = true},
                      LosslessCase{.type = "Q8_0"},
                      LosslessCase{.type = "Q4_0"},
                      LosslessCase{.type = "Q4_K"},
                      LosslessCase{.type = "Q4_0", .exact = false, .has_near_ties = true}));

}  // namespace
}  // namespace knap::test::lossless_gpu_test
