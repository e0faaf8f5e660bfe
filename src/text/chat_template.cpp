#include "text/chat_template.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "llama.h"

#include "base/error.h"
#include "base/quoted.h"

namespace knap {

namespace {

std::vector<std::string> known_names() {
    std::vector<const char*> names(llama_chat_builtin_templates(nullptr, 0));
    llama_chat_builtin_templates(names.data(), names.size());
    return {names.begin(), names.end()};
}

std::string join(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) {
        text += text.empty() ? name : ", " + name;
    }
    return text;
}

// nullopt: libllama does not recognise `source`.
std::optional<std::string> apply(const std::string& source,
                                 std::span<const ChatMessage> messages,
                                 bool open_answer) {
    std::vector<llama_chat_message> chat;
    chat.reserve(messages.size());
    for (const ChatMessage& message : messages) {
        chat.push_back({message.role.c_str(), message.content.c_str()});
    }
    const auto write = [&](char* to, int space) {
        return llama_chat_apply_template(source.c_str(), chat.data(), chat.size(), open_answer, to,
                                         space);
    };
    const int n_bytes = write(nullptr, 0);
    if (n_bytes < 0) {
        return std::nullopt;
    }
    std::string text(n_bytes, '\0');
    write(text.data(), n_bytes);
    return text;
}

// libllama keeps to itself what it recognised, but what it renders gives it away.
std::string find_name(const std::string& source) {
    const std::vector<ChatMessage> probe = {
        {"system", " Be brief. "}, {"user", " Hello "}, {"assistant", " Hi "}, {"user", " Why? "}};
    const auto rendered = apply(source, probe, true);
    for (const std::string& name : known_names()) {
        if (apply(name, probe, true) == rendered) {
            return name;
        }
    }
    return "";
}

}  // namespace

ChatTemplate::ChatTemplate(std::string name, std::string source)
    : name_(std::move(name)), source_(std::move(source)) {}

ChatTemplate ChatTemplate::choose(std::string_view name, std::string_view model_text) {
    const std::vector<std::string> names = known_names();
    if (!name.empty()) {
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            fail("`.chat_template`: ", in_quotes(name),
                 " is not one that libllama knows: ", join(names));
        }
        return ChatTemplate(std::string(name), std::string(name));
    }
    if (model_text.empty()) {
        fail("the model has no chat template: expected the name of one in `.chat_template`");
    }
    if (!recognises(model_text)) {
        fail(
            "the model's chat template is not one that libllama knows: expected in "
            "`.chat_template` one of ",
            join(names));
    }
    const std::string source(model_text);
    return ChatTemplate(find_name(source), source);
}

bool ChatTemplate::recognises(std::string_view model_text) {
    // libllama reads an empty text as an unknown template, and answers for a conversation without
    // messages.
    return apply(std::string(model_text), {}, false).has_value();
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, bool open_answer) const {
    for (const ChatMessage& message : messages) {
        // libllama takes C strings: the rest of the message would be lost without a word.
        if (message.role.find('\0') != std::string::npos ||
            message.content.find('\0') != std::string::npos) {
            fail("a message of a conversation must not contain a zero byte");
        }
    }
    auto text = apply(source_, messages, open_answer);
    KNAP_ASSERT(text.has_value(), "choose() made sure that libllama knows this template");
    return *std::move(text);
}

}  // namespace knap
