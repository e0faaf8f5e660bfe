#include "text/chat_format.h"

#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/chat_models.h"

namespace knap::chat_format_test {
namespace {

using test::ChatModel;
using testing::HasSubstr;

const ChatRequest kConversation{.messages = {{"system", "Be brief."}, {"user", "Hello"}}};

std::string error_of(const auto& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

ChatModel built_in(const char* name, const char* own = "") {
    return ChatModel(test::chat_vocabulary(own), name);
}

TEST(ChatFormat, RendersByName) {
    EXPECT_EQ(built_in("chatml").text(kConversation),
              "<|im_start|>system\nBe brief.<|im_end|>\n"
              "<|im_start|>user\nHello<|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_EQ(built_in("llama3").text(kConversation),
              "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
              "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
              "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatFormat, OpensTheAnswerOnlyWhenAsked) {
    for (const char* name : {"chatml", "llama3"}) {
        const ChatModel model = built_in(name);
        ChatRequest request = kConversation;
        const std::string open = model.text(request);
        request.open_answer = false;
        const std::string closed = model.text(request);
        EXPECT_THAT(open, testing::StartsWith(closed));
        EXPECT_THAT(open.substr(closed.size()), HasSubstr("assistant"));
    }
}

TEST(ChatFormat, ExecutesAModelsOwnTemplate) {
    const ChatModel qwen(test::kQwenTemplate);
    EXPECT_EQ(qwen.text(kConversation),
              "<|im_start|>system\nBe brief.<|im_end|>\n"
              "<|im_start|>user\nHello<|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_EQ(qwen.format.source(), test::kQwenTemplate);
    const ChatModel llama(test::kLlamaTemplate);
    EXPECT_EQ(llama.text({.messages = {{"user", " Hello "}}}),
              "<s><|start_header_id|>system<|end_header_id|>\n\n<|eot_id|>"
              "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
              "<|start_header_id|>assistant<|end_header_id|>\n\n");
    const ChatModel unknown("{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}");
    EXPECT_EQ(unknown.text(kConversation), "[system] Be brief.\n[user] Hello\n");
}

TEST(ChatFormat, TheTokenizerAddsTheFirstTokenOnce) {
    auto vocabulary = test::chat_vocabulary(test::kLlamaTemplate);
    vocabulary.adds_bos = true;
    const ChatPrompt prompt = ChatModel(vocabulary).format.render(kConversation);
    EXPECT_THAT(prompt.text, testing::StartsWith("<|start_header_id|>system"));
    ASSERT_GE(prompt.tokens.size(), 2u);
    EXPECT_EQ(prompt.tokens[0], vocabulary.bos);
    EXPECT_NE(prompt.tokens[1], vocabulary.bos);
}

TEST(ChatFormat, AGivenTemplateOverridesTheModels) {
    EXPECT_THAT(built_in("gemma", test::kQwenTemplate).text(kConversation),
                HasSubstr("<start_of_turn>"));
    EXPECT_EQ(ChatModel(test::chat_vocabulary(test::kQwenTemplate),
                        "{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}")
                  .text(kConversation),
              "system: Be brief.;user: Hello;");
}

TEST(ChatFormat, AModelWithoutTemplateIsAClearError) {
    EXPECT_EQ(error_of([] { ChatModel(""); }),
              "the model has no chat template: expected a name in `.chat_template`, found none");
}

TEST(ChatFormat, AnUnknownNameListsTheKnownOnes) {
    EXPECT_THAT(error_of([] { built_in("chatmail"); }),
                testing::AllOf(HasSubstr("`.chat_template`"), HasSubstr("chatmail"),
                               HasSubstr("chatml"), HasSubstr("llama3")));
    // A name must be exact, although libllama would recognise pieces of templates in it.
    EXPECT_THROW(built_in("my <|im_start|>"), Error);
}

TEST(ChatFormat, ABrokenTemplateIsAClearError) {
    EXPECT_THAT(
        error_of([] { ChatModel("{% for x in %}"); }),
        testing::AllOf(testing::StartsWith("the chat template cannot be read: "),
                       testing::Not(HasSubstr("std::exception")), testing::Not(HasSubstr("\n"))));
}

TEST(ChatFormat, ARefusalIsOneLineWithTheTemplatesWords) {
    const ChatModel model(
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('No tools here') }}"
        "{% endif %}{{ m.content }}{% endfor %}");
    const auto error = error_of([&] { model.text({.messages = {{"user", "a"}, {"tool", "b"}}}); });
    EXPECT_THAT(error, testing::AllOf(HasSubstr("the chat template refuses the messages: "),
                                      HasSubstr("No tools here"), testing::Not(HasSubstr("\n"))));
}

TEST(ChatFormat, LaterSystemMessagesStayOrAreMovedToTheBeginning) {
    const ChatRequest request{.messages = {{"system", "one"}, {"user", "ask"}, {"system", "two"}},
                              .open_answer = false};
    const std::string each = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
    EXPECT_EQ(ChatModel(each.c_str()).text(request), "[system:one][user:ask][system:two]");
    const std::string strict =
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
        "{{ raise_exception('system must come first') }}{% endif %}{% endfor %}";
    EXPECT_EQ(ChatModel((strict + each).c_str()).text(request), "[system:one\n\ntwo][user:ask]");
}

// A template that is out of time goes on until it ends, and the next one waits for it, though not
// for as long as that may take on a busy machine.
std::string after_a_slow_one(const std::function<std::string()>& format) {
    for (int i = 0; i < 12; ++i) {
        try {
            return format();
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("still busy"));
        }
    }
    return "never";
}

TEST(ChatFormat, ATemplateThatRunsTooLongIsStopped) {
    const ChatModel model(
        "{% for i in range(n | default(1)) %}{% for j in range(100) %}{% set x = i + j %}"
        "{% endfor %}{% endfor %}{{ messages[0].content }}");
    const auto text = [&](int n) {
        return model.text({.messages = {{"user", "Hello"}},
                           .open_answer = false,
                           .arguments = {{"n", std::to_string(n)}}});
    };
    text(20);
    const std::clock_t start = std::clock();  // of all threads
    text(20);
    const double ms = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    // Long enough on this machine, and over soon: the next template waits for it.
    const int n_slow = static_cast<int>(20 * 2500 / ms);
    EXPECT_THAT(error_of([&] { text(n_slow); }),
                HasSubstr("the chat template: expected at most 1 s"));
    EXPECT_EQ(after_a_slow_one([&] { return text(1); }), "Hello");
}

TEST(ChatFormat, ATemplateThatTakesTooLongToReadIsRefused) {
    const auto of_size = [](int n) {
        return concat("{% for i in range(", n, ") %}{% for j in range(100) %}{% set x = i + j %}",
                      "{% endfor %}{% endfor %}{{ messages[0].content }}");
    };
    ChatModel(of_size(20).c_str());
    const std::clock_t start = std::clock();  // of all threads
    ChatModel(of_size(20).c_str());
    const double ms = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const int n_slow = static_cast<int>(20 * 3000 / ms);
    EXPECT_THAT(error_of([&] { ChatModel(of_size(n_slow).c_str()); }),
                HasSubstr("the chat template: expected at most 1 s to be read"));
    EXPECT_EQ(after_a_slow_one([] {
                  return ChatModel("{{ messages[0].content }}")
                      .text({.messages = {{"user", "Hello"}}, .open_answer = false});
              }),
              "Hello");
}

TEST(ChatFormat, TemplatesThatNestDeeplyAreRefused) {
    const auto times = [](int n, std::string_view text) {
        std::string all;
        for (int i = 0; i < n; ++i) {
            all += text;
        }
        return all;
    };
    const auto error = [](const std::string& text) {
        return error_of([&] { ChatModel(text.c_str()); });
    };
    constexpr int kDeep = 100'000;
    EXPECT_THAT(error("{{ " + times(kDeep, "(") + "1" + times(kDeep, ")") + " }}"),
                HasSubstr("at most 200 brackets"));
    EXPECT_THAT(error("{{ " + times(kDeep, "[")), HasSubstr("at most 200 brackets"));
    EXPECT_THAT(error("{{ 1" + times(kDeep, "+1") + " }}"), HasSubstr("at most 2000 parts"));
    EXPECT_THAT(error("{{ " + times(kDeep, "not ") + "1 }}"), HasSubstr("at most 2000 parts"));
    EXPECT_THAT(error(times(kDeep, "{% if true %}")), HasSubstr("at most 500 blocks"));
    EXPECT_THAT(error("{% if a %}" + times(kDeep, "{% elif b %}") + "{% endif %}"),
                HasSubstr("at most 500 blocks"));
    EXPECT_EQ(ChatModel((times(600, "{% set x %}a{% endset %}{% if true %}b{% endif %}") +
                         times(600, "{% set x = 1 %}"))
                            .c_str())
                  .text({.messages = {{"user", "Hello"}}, .open_answer = false}),
              times(600, "b"));
}

// Real templates have macros that call themselves, so they cannot be refused.
TEST(ChatFormatDeathTest, ATemplateThatRecursesWithoutEndIsAnErrorAndNoCrash) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    // In parts, because every template here is a seed for fuzzing.
    const std::string endless =
        concat("{% macro f(x) %}{{ ", "f(x)", " }}{% endmacro %}{{ ", "f(1) }}");
    EXPECT_EXIT(ChatModel(endless.c_str()), testing::ExitedWithCode(1),
                "^knap: error: the chat template: expected it to fit the stack, found a recursion");
}

TEST(ChatFormat, LongMessagesAreNotCut) {
    const std::string longest(100'000, 'x');
    EXPECT_THAT(built_in("chatml").text({.messages = {{"user", longest}}}),
                HasSubstr(longest + "<|im_end|>"));
}

TEST(ChatFormat, TooLongMessagesAreRefusedBeforeAndAfterTheTemplate) {
    const std::string half(kMaxChatBytes / 2 + 1, 'x');
    const ChatModel model("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}");
    EXPECT_THAT(error_of([&] {
                    model.text({.messages = {{"user", half}, {"user", half}}});
                }),
                HasSubstr("messages: expected at most 16777216 bytes"));
    EXPECT_THAT(error_of([&] {
                    model.text({.messages = {{"user", half}}});
                }),
                HasSubstr("the formatted messages: expected at most 16777216 bytes"));
}

TEST(ChatFormat, RefusesAZeroByteAndUnknownRoles) {
    const ChatModel model = built_in("chatml");
    EXPECT_THROW(model.text({.messages = {{"user", std::string("a\0b", 3)}}}), Error);
    EXPECT_THAT(error_of([&] {
                    model.text({.messages = {{"user", "a"}, {"robot", "b"}}});
                }),
                testing::AllOf(HasSubstr("`.messages[1].role`"), HasSubstr("'robot'")));
}

TEST(ChatFormat, AnEmptyConversationCanOpenAnAnswer) {
    EXPECT_EQ(built_in("chatml").text({}), "<|im_start|>assistant\n");
}

TEST(ChatFormat, DeveloperIsAnotherNameForSystem) {
    EXPECT_THAT(ChatModel(test::kQwenTemplate).text({.messages = {{"developer", "Be brief."}}}),
                HasSubstr("<|im_start|>system\nBe brief."));
}

TEST(ChatFormat, ThinkingCanBeSwitchedOff) {
    const ChatModel model(test::kQwenTemplate);
    EXPECT_THAT(model.text({.messages = {{"user", "a"}}}), testing::Not(HasSubstr("<think>")));
    EXPECT_THAT(model.text({.messages = {{"user", "a"}}, .enables_thinking = false}),
                testing::EndsWith("<think>\n\n</think>\n\n"));
}

TEST(ChatFormat, ArgumentsReachTheTemplateButReplaceNothing) {
    const ChatModel model("{{ messages[0].content }} {{ style | tojson }}");
    EXPECT_EQ(model.text({.messages = {{"user", "a"}}, .arguments = {{"style", "[1,2]"}}}),
              "a [1, 2]");
    for (const auto& [name, value] : std::map<std::string, std::string>{
             {"messages", "[]"}, {"bos_token", "\"x\""}, {"style", "no JSON"}}) {
        const ChatRequest request{.messages = {{"user", "a"}}, .arguments = {{name, value}}};
        EXPECT_THAT(error_of([&] { model.text(request); }), HasSubstr("`.arguments")) << name;
    }
}

TEST(ChatFormat, ContinuesTheLastMessage) {
    const ChatModel model(test::kQwenTemplate);
    const ChatRequest request{.messages = {{"user", "Count."}, {"assistant", "One, two"}},
                              .continue_final = true};
    const ChatPrompt prompt = model.format.render(request);
    EXPECT_THAT(prompt.text, testing::EndsWith("One, two"));
    EXPECT_THAT(prompt.text, testing::Not(testing::EndsWith("<|im_end|>\n")));
    EXPECT_EQ(model.format.parse(prompt, ", three", false).content, ", three");
    EXPECT_THAT(error_of([&] {
                    model.text({.messages = {{"user", "a"}}, .continue_final = true});
                }),
                HasSubstr("`.continue_final`"));
}

TEST(ChatFormat, ThreadsMayRenderAtOnce) {
    const ChatModel model(test::kQwenTemplate);
    const std::string expected = model.text(kConversation);
    std::vector<std::string> texts(4);
    std::vector<std::thread> threads;
    for (std::string& text : texts) {
        threads.emplace_back([&] {
            for (int i = 0; i < 5; ++i) {
                text = model.text(kConversation);
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_THAT(texts, testing::Each(expected));
}

TEST(ChatFormat, KnowsWhatATemplateCan) {
    EXPECT_TRUE(ChatModel(test::kQwenTemplate).format.capabilities().at("supports_tools"));
    EXPECT_FALSE(ChatModel("{{ messages[0].content }}").format.capabilities().at("supports_tools"));
    EXPECT_TRUE(built_in("llama3").format.capabilities().at("supports_system_role"));
}

}  // namespace
}  // namespace knap::chat_format_test
