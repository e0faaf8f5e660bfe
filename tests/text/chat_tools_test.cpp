// Tools and schemas: what the prompt shows, what the grammar allows, and what parse() makes of an
// answer.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_models.h"

namespace knap::chat_tools_test {
namespace {

using test::allows;
using test::ChatModel;
using testing::HasSubstr;

constexpr const char* kCitySchema =
    R"({"type":"object","properties":{"city":{"type":"string"}},"required":["city"]})";

ChatRequest weather(ToolChoice choice = ToolChoice::automatic) {
    return {.messages = {{"user", "Rain?"}},
            .tools = {{"get_weather", "Tells the weather.", kCitySchema}},
            .tool_choice = choice};
}

std::string error_of(const ChatModel& model, const ChatRequest& request) {
    try {
        model.format.render(request);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(ChatTools, ThePromptShowsThem) {
    EXPECT_EQ(ChatModel(test::kQwenTemplate).text(weather()),
              "<|im_start|>system\n# Tools\n<tools>\n"
              R"({"type": "function", "function": {"name": "get_weather", )"
              R"("description": "Tells the weather.", "parameters": {"type": "object", )"
              R"("properties": {"city": {"type": "string"}}, "required": ["city"]}}})"
              "\n</tools>\nFor a call write:\n<tool_call>\n"
              R"({"name": <name>, "arguments": <arguments>})"
              "\n</tool_call><|im_end|>\n<|im_start|>user\nRain?<|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_THAT(ChatModel(test::kLlamaTemplate).text(weather()),
                testing::AllOf(HasSubstr("Respond with {\"name\""),
                               HasSubstr("\"name\": \"get_weather\"")));
}

TEST(ChatTools, CallsAndAnswersOfToolsAreShown) {
    const ChatRequest request{
        .messages = {{"user", "Rain?"},
                     {.role = "assistant",
                      .content = "I look.",
                      .reasoning = "Hm.",
                      .tool_calls = {{"c1", "get_weather", R"({"city":"Bonn"})"}}},
                     {.role = "tool", .content = "dry", .tool_call_id = "c1"}}};
    EXPECT_EQ(ChatModel(test::kQwenTemplate).text(request),
              "<|im_start|>user\nRain?<|im_end|>\n<|im_start|>assistant\n"
              "<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n"
              R"({"name": "get_weather", "arguments": {"city": "Bonn"}})"
              "\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\ndry\n"
              "</tool_response><|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTools, NoneLeavesThemOut) {
    const ChatModel model(test::kQwenTemplate);
    const ChatPrompt prompt = model.format.render(weather(ToolChoice::none));
    EXPECT_EQ(prompt.text, model.text({.messages = {{"user", "Rain?"}}}));
    EXPECT_EQ(prompt.grammar, Grammar());
}

TEST(ChatTools, AutomaticGrammarWaitsForACall) {
    const ChatPrompt prompt = ChatModel(test::kQwenTemplate).format.render(weather());
    EXPECT_THAT(prompt.grammar.text, HasSubstr("get_weather"));
    ASSERT_FALSE(prompt.grammar.trigger_patterns.empty() && prompt.grammar.trigger_tokens.empty());
    EXPECT_THAT(prompt.grammar.trigger_patterns, testing::Contains(HasSubstr("<tool_call>")));
    EXPECT_TRUE(prompt.grammar.prefix.empty());
}

TEST(ChatTools, RequiredGrammarAllowsCallsAlone) {
    const ChatModel model(test::kQwenTemplate);
    const Grammar grammar = model.format.render(weather(ToolChoice::required)).grammar;
    EXPECT_TRUE(grammar.trigger_patterns.empty());
    EXPECT_EQ(model.tokenizer->decode(grammar.prefix), "<|im_start|>assistant\n");
    const std::string call =
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
        "\"Bonn\"}}\n</tool_call>";
    EXPECT_TRUE(allows(*model.tokenizer, grammar, call));
    EXPECT_FALSE(allows(*model.tokenizer, grammar, "It is dry."));
    EXPECT_FALSE(allows(*model.tokenizer, grammar,
                        "<tool_call>\n{\"name\": \"get_news\", \"arguments\": {}}\n</tool_call>"));
    EXPECT_FALSE(
        allows(*model.tokenizer, grammar,
               "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>"));
}

TEST(ChatTools, WithoutThoughtsNothingComesBeforeARequiredCall) {
    const ChatModel model(test::kQwenTemplate);
    ChatRequest request = weather(ToolChoice::required);
    request.enables_thinking = false;
    const Grammar grammar = model.format.render(request).grammar;
    const std::string call =
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
        "\"Bonn\"}}\n</tool_call>";
    EXPECT_TRUE(allows(*model.tokenizer, grammar, call));
    EXPECT_FALSE(allows(*model.tokenizer, grammar, "It is dry.\n" + call));
}

TEST(ChatTools, LlamaCallsAreBareJson) {
    const ChatModel model(test::kLlamaTemplate);
    const ChatPrompt prompt = model.format.render(weather(ToolChoice::required));
    const std::string call = R"({"name": "get_weather", "parameters": {"city": "Bonn"}})";
    EXPECT_TRUE(allows(*model.tokenizer, prompt.grammar, call));
    EXPECT_FALSE(allows(*model.tokenizer, prompt.grammar, "It is dry."));
    const ChatMessage message = model.format.parse(prompt, call, false);
    ASSERT_EQ(message.tool_calls.size(), 1u);
    EXPECT_EQ(message.tool_calls[0].name, "get_weather");
    EXPECT_EQ(message.tool_calls[0].arguments, R"({"city": "Bonn"})");
}

TEST(ChatTools, ParseFindsReasoningContentAndCalls) {
    const ChatModel model(test::kQwenTemplate);
    const ChatPrompt prompt = model.format.render(weather());
    const ChatMessage message = model.format.parse(
        prompt,
        "<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n"
        "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>",
        false);
    EXPECT_EQ(message.role, "assistant");
    EXPECT_THAT(message.reasoning, HasSubstr("Hm."));
    EXPECT_THAT(message.content, testing::StartsWith("I look."));
    ASSERT_EQ(message.tool_calls.size(), 1u);
    EXPECT_EQ(message.tool_calls[0], (ToolCall{"", "get_weather", R"({"city": "Bonn"})"}));
    EXPECT_EQ(model.format.parse(prompt, "It is dry.", false).content, "It is dry.");
}

TEST(ChatTools, ReasoningStaysInTheContentIfAsked) {
    const ChatModel model(test::kQwenTemplate);
    const std::string answer = "<think>\nHm.\n</think>\n\nYes.";
    ChatRequest request{.messages = {{"user", "a"}}};
    const ChatMessage split = model.format.parse(model.format.render(request), answer, false);
    EXPECT_THAT(split.content, testing::Not(HasSubstr("Hm.")));
    EXPECT_THAT(split.reasoning, HasSubstr("Hm."));
    request.extracts_reasoning = false;
    EXPECT_EQ(model.format.parse(model.format.render(request), answer, false).content, answer);
}

TEST(ChatTools, ChannelsAreSeparatedFromTheAnswer) {
    const ChatModel model(test::kChannelTemplate);
    const ChatPrompt prompt = model.format.render({.messages = {{"user", "a"}}});
    EXPECT_EQ(prompt.text, "<|start|>user<|message|>a<|end|><|start|>assistant");
    const std::string answer =
        "<|channel|>analysis<|message|>Hm.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Yes.";
    const ChatMessage message = model.format.parse(prompt, answer, false);
    EXPECT_EQ(message.content, "Yes.");
    EXPECT_EQ(message.reasoning, "Hm.");
    ChatMessage before{"assistant", ""};
    for (std::size_t n = 0; n <= answer.size(); ++n) {
        const ChatMessage now = model.format.parse(prompt, answer.substr(0, n), true);
        EXPECT_THAT(now.content, testing::StartsWith(before.content)) << n;
        EXPECT_THAT(now.content, testing::Not(HasSubstr("<"))) << "part of a mark, after " << n;
        EXPECT_THAT(now.reasoning, testing::StartsWith(before.reasoning)) << n;
        EXPECT_THAT(now.reasoning, testing::Not(HasSubstr("<"))) << "part of a mark, after " << n;
        before = now;
    }
    EXPECT_EQ(before.content, "Yes.");
}

// What was said once is never taken back while the answer grows, and no name is incomplete.
TEST(ChatTools, PartialAnswersOnlyGrow) {
    const ChatModel model(test::kQwenTemplate);
    ChatRequest request = weather();
    request.tools.push_back({"get_weather_map", "", ""});
    const ChatPrompt prompt = model.format.render(request);
    const std::string answer =
        "<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n"
        "{\"name\": \"get_weather_map\", \"arguments\": {}}\n</tool_call>";
    ChatMessage before{"assistant", ""};
    for (std::size_t n = 0; n <= answer.size(); ++n) {
        const ChatMessage now = model.format.parse(prompt, answer.substr(0, n), true);
        EXPECT_THAT(now.content, testing::StartsWith(before.content)) << n;
        EXPECT_THAT(now.content, testing::Not(HasSubstr("<"))) << "part of a tag, after " << n;
        EXPECT_THAT(now.reasoning, testing::StartsWith(before.reasoning)) << n;
        ASSERT_GE(now.tool_calls.size(), before.tool_calls.size()) << n;
        for (const ToolCall& call : now.tool_calls) {
            EXPECT_EQ(call.name, "get_weather_map") << n;
        }
        before = now;
    }
    ASSERT_EQ(before.tool_calls.size(), 1u);
    EXPECT_EQ(before.tool_calls[0].arguments, "{}");
    EXPECT_EQ(before, model.format.parse(prompt, answer, false));
}

TEST(ChatTools, ACallThatNestsDeeplyIsContent) {
    const ChatModel model(test::kQwenTemplate);
    const ChatPrompt prompt = model.format.render(weather());
    const std::string answer =
        "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": " +
        std::string(20'000, '[');
    EXPECT_EQ(model.format.parse(prompt, answer, true).content, "");
    EXPECT_EQ(model.format.parse(prompt, answer, false).content, answer);
}

TEST(ChatTools, AnAnswerOutOfFormatIsContent) {
    const ChatModel model(test::kQwenTemplate);
    const ChatRequest request{.messages = {{"user", "a"}}, .json_schema = kCitySchema};
    const ChatPrompt prompt = model.format.render(request);
    EXPECT_EQ(model.format.parse(prompt, "no JSON", false).content, "no JSON");
    EXPECT_EQ(model.format.parse(prompt, "no JSON", true).content, "");
}

TEST(ChatTools, SchemaOfTheAnswer) {
    for (const char* chat_template : {test::kQwenTemplate, test::kLlamaTemplate}) {
        const ChatModel model(chat_template);
        const ChatRequest request{.messages = {{"user", "a"}}, .json_schema = kCitySchema};
        const ChatPrompt prompt = model.format.render(request);
        EXPECT_TRUE(allows(*model.tokenizer, prompt.grammar, R"({"city": "Bonn"})"));
        EXPECT_FALSE(allows(*model.tokenizer, prompt.grammar, R"({"town": "Bonn"})"));
        EXPECT_FALSE(allows(*model.tokenizer, prompt.grammar, "Bonn"));
        EXPECT_EQ(model.format.parse(prompt, R"({"city": "Bonn"})", false).content,
                  R"({"city": "Bonn"})");
    }
}

TEST(ChatTools, BuiltInFormatsEnforceSchemas) {
    const ChatModel model(test::chat_vocabulary(""), "llama3");
    const ChatPrompt prompt =
        model.format.render({.messages = {{"user", "a"}}, .json_schema = kCitySchema});
    EXPECT_TRUE(allows(*model.tokenizer, prompt.grammar, R"({"city": "Bonn"})"));
    EXPECT_FALSE(allows(*model.tokenizer, prompt.grammar, "Bonn"));
}

TEST(ChatTools, FormatsWithoutAGrammarForSchemasEnforceThemToo) {
    // llama-common recognises Kimi K2 by these words, and gives it none.
    const ChatModel model(
        "{% for m in messages %}{{ m.content }}{% endfor %}"
        "{# <|tool_calls_section_begin|> <|tool_call_begin|> #}");
    const ChatPrompt prompt = model.format.render(
        {.messages = {{"user", "a"}}, .json_schema = R"({"type":"string","pattern":"^.x$"})"});
    EXPECT_TRUE(prompt.grammar.prefix.empty());
    EXPECT_TRUE(allows(*model.tokenizer, prompt.grammar, "\"ax\""));
    EXPECT_FALSE(allows(*model.tokenizer, prompt.grammar, "\"\"x\""));
}

TEST(ChatTools, AGrammarPassesThrough) {
    const ChatModel model(test::kQwenTemplate);
    const ChatRequest request{.messages = {{"user", "a"}}, .grammar = "root ::= \"yes\""};
    EXPECT_EQ(model.format.render(request).grammar, Grammar{.text = "root ::= \"yes\""});
}

TEST(ChatTools, AGrammarStartsAfterAThoughtThatThePromptOpens) {
    std::string opened = test::kQwenTemplate;
    const std::string header = "{{- '<|im_start|>assistant\\n' }}\n    {%- if enable_thinking";
    const auto at = opened.find(header);
    ASSERT_NE(at, std::string::npos);
    opened.insert(at + header.find(" }}") - 1, "<think>\\n");
    const ChatModel model(opened.c_str());
    const ChatRequest request{.messages = {{"user", "a"}}, .grammar = "root ::= \"yes\""};
    const ChatPrompt prompt = model.format.render(request);
    EXPECT_THAT(prompt.text, testing::EndsWith("<think>\n"));
    EXPECT_THAT(prompt.grammar.starts_after, testing::ElementsAre("</think>"));
    const ChatMessage message = model.format.parse(prompt, "Hm.\n</think>\n\nyes", false);
    EXPECT_THAT(message.reasoning, testing::StartsWith("Hm.")) << "without the prompt's line break";
    EXPECT_THAT(message.content, testing::EndsWith("yes"));
}

TEST(ChatTools, OneConstraintAtATime) {
    const ChatModel model(test::kQwenTemplate);
    ChatRequest request = weather();
    request.json_schema = kCitySchema;
    EXPECT_THAT(error_of(model, request), HasSubstr("found 2"));
    request.tool_choice = ToolChoice::none;
    EXPECT_EQ(error_of(model, request), "no error");
    request.grammar = "root ::= \"a\"";
    EXPECT_THAT(error_of(model, request), HasSubstr("found 2"));
}

TEST(ChatTools, RefusalsNameTheTool) {
    const ChatModel model(test::kQwenTemplate);
    ChatRequest request = weather();
    request.tools[0].parameters =
        R"({"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}})";
    EXPECT_THAT(error_of(model, request),
                testing::AllOf(HasSubstr("`.tools[get_weather].parameters`"),
                               HasSubstr("#/properties/a"), HasSubstr("`$ref`")));
    request = weather();
    request.tools[0].name = "two words";
    EXPECT_THAT(error_of(model, request), HasSubstr("'two words'"));
    request = weather();
    request.tools.push_back(request.tools[0]);
    EXPECT_THAT(error_of(model, request), HasSubstr("twice"));
    EXPECT_THAT(error_of(model, {.messages = {{"user", "a"}}, .tool_choice = ToolChoice::required}),
                HasSubstr("`.tool_choice`"));
}

TEST(ChatTools, ATemplateWithoutToolsRefusesThem) {
    EXPECT_THAT(error_of(ChatModel(test::chat_vocabulary(""), "chatml"), weather()),
                HasSubstr("`.tools`: expected a chat template with tools"));
    EXPECT_THAT(error_of(ChatModel(test::chat_vocabulary(""), "llama3"), weather()),
                HasSubstr("`.tools`"));
}

TEST(ChatTools, DeepArgumentsAreRefused) {
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    const ChatRequest request{
        .messages = {{"user", "a"},
                     {.role = "assistant", .tool_calls = {{"1", "get_weather", deep}}}}};
    EXPECT_THAT(error_of(ChatModel(test::kQwenTemplate), request), HasSubstr("64 levels"));
}

}  // namespace
}  // namespace knap::chat_tools_test
