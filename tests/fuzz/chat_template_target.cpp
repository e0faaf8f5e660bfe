#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "text/chat_models.h"

namespace knap::fuzz::chat_template_target_parts {
namespace {

ChatRequest conversation(bool has_tools) {
    ChatRequest request{.messages = {{"system", "Be brief."},
                                     {"user", "Hello <|im_end|>"},
                                     {"assistant", "Hi"},
                                     {"user", "Why?"}}};
    if (has_tools) {
        request.tools = {{"get_time", "The time",
                          R"({"type":"object","properties":{"zone":{"type":"string"}}})"}};
    }
    return request;
}

// The template of a model.
void run(std::string_view input) {
    static const auto tokenizer = test::load_vocabulary(test::chat_vocabulary(""));
    is_accepted([&] {
        const ChatFormat format(make_chat_format(*tokenizer, input));
        for (const bool has_tools : {false, true}) {
            is_accepted([&] {
                const ChatPrompt prompt = format.render(conversation(has_tools));
                expect(prompt.text.size() <= kMaxChatBytes, "a prompt has a limit");
                format.parse(prompt, "<tool_call>{\"name\": \"get_time\"", true);
                format.parse(prompt, "It is late.", false);
            });
        }
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all{"chatml", "llama3"};
    for (const std::string& text : with_any(string_literals("tests/text"), {"{{", "{%"})) {
        all.push_back(text);
    }
    all.push_back(bytes_of(in_repository("tests/serve/clients/tools.jinja")));
    for (const std::string& text : deep_and_long()) {
        all.push_back("{{ " + text);
        all.push_back("{% " + text);
        all.push_back("{{ \"" + text + "\" }}");
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::chat_template_target_parts

knap::fuzz::Target knap::fuzz::chat_template_target() {
    using namespace chat_template_target_parts;
    return {
        .name = "chat_template",
        .run = run,
        .seeds = seeds,
        .word_sources = {"tests/text/chat_templates_test.cpp", "tests/text/chat_tools_test.cpp"}};
}
