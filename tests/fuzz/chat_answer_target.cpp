#include <memory>

#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "serve/answer/chat_answer.h"
#include "text/chat_models.h"
#include "text/utf8_stream.h"

namespace knap::fuzz::chat_answer_target_parts {
namespace {

// A format, and a prompt with tools, if it has tools, and one without.
struct Conversation {
    explicit Conversation(const char* chat_template) : model(chat_template) {
        ChatRequest request{.messages = {{"user", "What time is it?"}}};
        prompts[0] = prompts[1] = model.format.render(request);
        request.tools = {{"get_time", "The time",
                          R"({"type":"object","properties":{"zone":{"type":"string"}}})"},
                         {"get_times", "", R"({"type":"object","properties":{}})"}};
        is_accepted([&] { prompts[1] = model.format.render(request); });
    }

    test::ChatModel model;
    ChatPrompt prompts[2];
};

const Conversation& conversation(std::uint32_t i) {
    static const Conversation all[] = {Conversation(test::kQwenTemplate),
                                       Conversation(test::kLlamaTemplate),
                                       Conversation(test::kChannelTemplate)};
    return all[i];
}

// The contents of a stream's chunks together.
std::string content_of(const std::vector<Json>& chunks) {
    std::string content;
    for (const Json& chunk : chunks) {
        const std::string line = to_text(chunk);
        expect(line.find('\n') == line.npos, "an event is one line");
        for (const Json& choice : chunk.value("choices", Json::array())) {
            const Json delta = choice.value("delta", Json::object());
            const auto text = delta.find("content");
            content += text != delta.end() && text->is_string() ? text->get<std::string>() : "";
        }
    }
    return content;
}

ChatAnswer answer_to(const Conversation& chat, const ChatPrompt& prompt, bool streams) {
    return ChatAnswer({.format = chat.model.format,
                       .prompt = prompt,
                       .piece_of = [](Token) { return std::string(); },
                       .streams = streams});
}

// Four choices, and the text of an answer.
void run(std::string_view input) {
    Choices choices(input.substr(0, 4));
    const Conversation& chat = conversation(choices.below(3));
    const ChatPrompt& prompt = chat.prompts[choices.below(2)];
    Utf8Stream stream;
    std::string text = stream.push(input.substr(std::min<std::size_t>(input.size(), 4)));
    text += stream.finish();

    ChatAnswer streamed = answer_to(chat, prompt, true);
    std::vector<Json> chunks = streamed.begin(0);
    const std::size_t n_first = choices.below(64);
    std::size_t n_done = 0;
    for (std::size_t n = n_first; n_done < text.size(); n = 1 + choices.below(32)) {
        const std::string part = stream.push(text.substr(n_done, n));
        n_done += std::min(n, text.size() - n_done);
        for (Json& chunk : streamed.add(0, {.text = part})) {
            chunks.push_back(std::move(chunk));
        }
        if (n == 0 || choices.rest().empty()) {
            break;
        }
    }
    for (Json& chunk :
         streamed.add(0, {.text = stream.push(text.substr(n_done)) + stream.finish()})) {
        chunks.push_back(std::move(chunk));
    }
    for (Json& chunk : streamed.finish(0, {})) {
        chunks.push_back(std::move(chunk));
    }
    ChatAnswer whole = answer_to(chat, prompt, false);
    whole.begin(0);
    whole.add(0, {.text = text});
    whole.finish(0, {});
    to_text(whole.whole());
    content_of(chunks);
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    std::vector<std::string> texts = string_literals("tests/text/chat_tools_test.cpp");
    for (const char* source :
         {"tests/text/chat_format_test.cpp", "tests/text/chat_templates_test.cpp",
          "tests/serve/answer/chat_answer_test.cpp"}) {
        for (std::string& text : string_literals(source)) {
            texts.push_back(std::move(text));
        }
    }
    for (const std::string& text : texts) {
        for (const char format : {'\0', '\1', '\2'}) {
            all.push_back(std::string{format, '\1', '\7', '\3'} + text);
        }
    }
    for (const std::string& text : deep_and_long()) {
        all.push_back(std::string("\0\1\7\3", 4) + text);
        all.push_back(std::string("\0\1\7\3", 4) +
                      "<tool_call>\n{\"name\": \"get_time\", \"arguments\": " + text);
        all.push_back(std::string("\1\1\7\3", 4) +
                      "{\"name\": \"get_time\", \"parameters\": {\"zone\": " + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::chat_answer_target_parts

knap::fuzz::Target knap::fuzz::chat_answer_target() {
    using namespace chat_answer_target_parts;
    return {.name = "chat_answer",
            .run = run,
            .seeds = seeds,
            .max_bytes = 512,
            .word_sources = {"tests/text/chat_models.h", "tests/text/chat_tools_test.cpp"}};
}
