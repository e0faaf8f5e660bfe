#include "tools/measure/report/bench_title.h"

#include <gtest/gtest.h>

namespace knap::bench_title_test {
namespace {

struct Case {
    const char* file;
    const char* name;
    std::int64_t n_parameters;
    const char* types;
    const char* title;
};

void expect_titles(std::initializer_list<Case> cases) {
    for (const Case& c : cases) {
        EXPECT_EQ(
            model_title(
                {.file = c.file, .name = c.name, .n_parameters = c.n_parameters, .types = c.types}),
            c.title);
    }
}

TEST(ModelTitle, UsesAFileNameInTheUsualForm) {
    expect_titles({
        {"SmolLM2-135M-Instruct.Q4_1.gguf", "Smollm2 135M 8k Lc100K Mix1 Ep2", 134515008,
         "Q4_1,F32,Q8_0", "SmolLM2 135M Instruct, Q4_1"},
        {"Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", "llama", 8030261312, "Q4_K,F32,Q6_K",
         "Meta Llama 3.1 8B Instruct, Q4_K_M"},
        {"Mixtral-8x7B-v0.1-iq4_xs-00001-of-00003.gguf", "", 0, "IQ4_XS",
         "Mixtral 8x7B v0.1, IQ4_XS"},
        {"Qwen3-0.6B-BF16", "", 0, "BF16,F32", "Qwen3 0.6B, BF16"},
    });
}

TEST(ModelTitle, FallsBackToTheNameInsideTheFile) {
    expect_titles({
        {"model.gguf", "SmolLM2-135M-Instruct", 134515008, "Q4_1,Q8_0",
         "SmolLM2 135M Instruct, Q4_1"},
        {"model.gguf", "smollm2_135m-instruct", 134515008, "F32,Q8_0",
         "Smollm2 135M Instruct, Q8_0"},
        {"bench-1b-Q8_0.gguf", "llama-3.2-1b (random weights)", 1235814400, "Q8_0",
         "llama-3.2-1b (random weights), 1.2B, Q8_0"},
        {"model.gguf", "A_model of two words", 8030261312, "F32", "A model of two words, 8B, F32"},
    });
}

TEST(ModelTitle, FallsBackToAnyFileName) {
    expect_titles({
        {"tiny_model.f16.gguf", "", 900, "F16", "Tiny Model, F16"},
        {"-.gguf", "", 0, "", ""},
        {"", "", 12000000, "Q8_0", "12M, Q8_0"},
        {"\xc3\xa9t\xc3\xa9.gguf", "", 0, "", "\xc3\xa9t\xc3\xa9"},
    });
}

}  // namespace
}  // namespace knap::bench_title_test
