#include "text/chat_template.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace knap::chat_template_test {
namespace {

const std::vector<ChatMessage> kConversation = {{"system", "Be brief."}, {"user", "Hello"}};

std::string error_of(const auto& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(ChatTemplate, RendersByName) {
    const auto chatml = ChatTemplate::choose("chatml", "");
    EXPECT_EQ(chatml.name(), "chatml");
    EXPECT_EQ(chatml.render(kConversation, true),
              "<|im_start|>system\nBe brief.<|im_end|>\n"
              "<|im_start|>user\nHello<|im_end|>\n"
              "<|im_start|>assistant\n");
}

TEST(ChatTemplate, OpensTheAnswerOnlyWhenAsked) {
    const auto chatml = ChatTemplate::choose("chatml", "");
    EXPECT_EQ(chatml.render(kConversation, false) + "<|im_start|>assistant\n",
              chatml.render(kConversation, true));
}

TEST(ChatTemplate, RecognisesAModelsOwnText) {
    const std::string text = "{{'<|start_header_id|>' + role + '<|end_header_id|>'}}";
    ASSERT_TRUE(ChatTemplate::recognises(text));
    const auto own = ChatTemplate::choose("", text);
    EXPECT_EQ(own.name(), "llama3");
    EXPECT_EQ(own.render(kConversation, true),
              ChatTemplate::choose("llama3", "").render(kConversation, true));
}

TEST(ChatTemplate, AGivenNameOverridesTheModels) {
    const auto chosen = ChatTemplate::choose("gemma", "{{'<|im_start|>'}}");
    EXPECT_EQ(chosen.name(), "gemma");
    EXPECT_THAT(chosen.render(kConversation, true), testing::HasSubstr("<start_of_turn>"));
}

TEST(ChatTemplate, AModelWithoutTemplateIsAClearError) {
    EXPECT_FALSE(ChatTemplate::recognises(""));
    EXPECT_EQ(error_of([] { ChatTemplate::choose("", ""); }),
              "the model has no chat template: expected a name in `.chat_template`, found none");
}

TEST(ChatTemplate, AnUnknownTextIsAClearError) {
    EXPECT_FALSE(ChatTemplate::recognises("{{ messages }}"));
    EXPECT_THAT(
        error_of([] { ChatTemplate::choose("", "{{ messages }}"); }),
        testing::AllOf(testing::HasSubstr("libllama does not know the model's chat template"),
                       testing::HasSubstr("chatml")));
}

TEST(ChatTemplate, AnUnknownNameListsTheKnownOnes) {
    EXPECT_THAT(
        error_of([] { ChatTemplate::choose("chatmail", ""); }),
        testing::AllOf(testing::HasSubstr("`.chat_template`"), testing::HasSubstr("chatmail"),
                       testing::HasSubstr("chatml"), testing::HasSubstr("llama3")));
    // A name must be exact, although libllama would recognise pieces of templates in it.
    EXPECT_THROW(ChatTemplate::choose("my <|im_start|>", ""), Error);
}

TEST(ChatTemplate, LongMessagesAreNotCut) {
    const std::string longest(100'000, 'x');
    const auto text = ChatTemplate::choose("chatml", "").render({{{"user", longest}}}, true);
    EXPECT_THAT(text, testing::HasSubstr(longest + "<|im_end|>"));
}

TEST(ChatTemplate, RefusesAZeroByte) {
    const auto chatml = ChatTemplate::choose("chatml", "");
    const std::vector<ChatMessage> messages = {{"user", std::string("a\0b", 3)}};
    EXPECT_THROW(chatml.render(messages, true), Error);
}

TEST(ChatTemplate, AnEmptyConversationCanOpenAnAnswer) {
    EXPECT_EQ(ChatTemplate::choose("chatml", "").render({}, true), "<|im_start|>assistant\n");
}

}  // namespace
}  // namespace knap::chat_template_test
