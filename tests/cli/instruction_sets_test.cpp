// KNAP_ISA: texts and log-probabilities do not depend on the instruction set.
#include "cli/command.h"
#include "kernels/isa.h"

namespace knap::cli_instruction_sets_test {
namespace {

using nlohmann::json;

struct Case {
    std::string type;   // of the weights
    std::string cache;  // of keys and values
};

class InstructionSetsInAProcess : public ::testing::TestWithParam<Case> {};

TEST_P(InstructionSetsInAProcess, GiveTheSameLogits) {
    if (!may_use(Isa::avx512)) {
        GTEST_SKIP() << "needs a machine with several instruction sets: AVX2 and AVX-512";
    }
    std::string prompt;
    for (int i = 0; i < 100; ++i) {  // more than a chunk of attention
        prompt += std::to_string(i * i) + " ";
    }
    const auto run = [&](const std::string& isa) {
        const auto result =
            run_knap({.arguments = {"run",
                                    "-m",
                                    tiny_model("small-llama", GetParam().type).string(),
                                    "-t",
                                    "1",
                                    "-p",
                                    prompt,
                                    "-n",
                                    "12",
                                    "-c",
                                    "1024",
                                    "--json",
                                    "--ignore-eos",
                                    "--logprobs",
                                    "20",
                                    "--strategy",
                                    "autoregressive",
                                    "-ctk",
                                    GetParam().cache,
                                    "-ctv",
                                    GetParam().cache},
                      .environment = {{"KNAP_ISA", isa}}});
        EXPECT_EQ(result.exit_code, 0) << result.error;
        return json::parse(result.output, nullptr, /*allow_exceptions=*/false);
    };
    const json avx512 = run("avx512");
    ASSERT_EQ(avx512["logprobs"].size(), 12u);
    EXPECT_GT(avx512["n_prompt"], 256);
    EXPECT_EQ(run("avx2")["logprobs"], avx512["logprobs"]);
}

INSTANTIATE_TEST_SUITE_P(Models,
                         InstructionSetsInAProcess,
                         ::testing::Values(Case{"Q4_K", "f16"},
                                           Case{"Q4_1", "q8_0"},
                                           Case{"F16", "f16"}),
                         [](const auto& test) { return test.param.type + "_" + test.param.cache; });

TEST(NoInstructionSet, IsAWarning) {
    const auto result = run_knap({.arguments = on_tiny_model("run") + Words{"-p", "a", "-n", "4"},
                                  .environment = {{"KNAP_ISA", "plain"}}});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.error, testing::HasSubstr("knap: warning: knap's CPU kernels need AVX2"));
}

}  // namespace
}  // namespace knap::cli_instruction_sets_test
