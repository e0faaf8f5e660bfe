#include "tools/measure/prompt_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/tiny_model.h"

namespace knap::prompt_fit_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Engine tiny_engine() {
    return Engine({.model_path = tiny_model(), .n_ctx = 256, .n_threads = 1});
}

std::string document() {
    std::string text = "Read this.";
    for (int i = 0; i < 60; ++i) {
        text += " flint chert";
    }
    return text + "\n\nSummary:";
}

TEST(FitPrompt, CutsTheEndOfTheDocumentAndKeepsTheQuestion) {
    const Engine engine = tiny_engine();
    const FittedPrompt whole = fit_prompt(engine, document(), 100000);
    EXPECT_FALSE(whole.is_cut());
    EXPECT_EQ(whole.tokens.size(), static_cast<std::size_t>(whole.n_document_tokens));
    const std::size_t n_max = whole.tokens.size() / 2;
    const FittedPrompt cut = fit_prompt(engine, document(), n_max);
    EXPECT_TRUE(cut.is_cut());
    EXPECT_EQ(cut.n_document_tokens, whole.n_document_tokens);
    EXPECT_LE(cut.tokens.size(), n_max);
    EXPECT_GT(cut.tokens.size(), n_max / 2);
    const std::string text = engine.detokenize(cut.tokens);
    EXPECT_THAT(text, HasSubstr("Read this."));
    EXPECT_THAT(text, HasSubstr("\n\nSummary:"));
}

TEST(FitPrompt, RefusesAPromptThatIsTooLongWithoutItsDocument) {
    const Engine engine = tiny_engine();
    EXPECT_THAT([&] { fit_prompt(engine, document(), 2); },
                ThrowsMessage<Error>(HasSubstr("expected at most 2 tokens")));
}

}  // namespace
}  // namespace knap::prompt_fit_test
