#include "text/chat_template.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "llama.h"

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"

namespace knap {

namespace {

std::vector<std::string> known_names() {
    std::vector<const char*> names(llama_chat_builtin_templates(nullptr, 0));
    llama_chat_builtin_templates(names.data(), names.size());
    return {names.begin(), names.end()};
}

// Returns nullopt when libllama does not recognise `source`.
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

// libllama does not report which template it recognised. Compare what the known ones render.
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
            fail("`.chat_template`: expected one of ", join(names, ", "), ", found ",
                 in_quotes(name));
        }
        return ChatTemplate(std::string(name), std::string(name));
    }
    if (model_text.empty()) {
        fail("the model has no chat template: expected a name in `.chat_template`, found none");
    }
    if (!recognises(model_text)) {
        fail("libllama does not know the model's chat template: expected one of ",
             join(names, ", "), " in `.chat_template`, found none");
    }
    const std::string source(model_text);
    return ChatTemplate(find_name(source), source);
}

bool ChatTemplate::recognises(std::string_view model_text) {
    // To libllama an empty text is an unknown template. It recognises a template without any
    // messages.
    return apply(std::string(model_text), {}, false).has_value();
}

std::string ChatTemplate::render(std::span<const ChatMessage> messages, bool open_answer) const {
    for (const ChatMessage& message : messages) {
        // libllama takes C strings and would silently drop the rest of the message.
        if (message.role.find('\0') != std::string::npos ||
            message.content.find('\0') != std::string::npos) {
            fail("messages: expected text without zero bytes, found one");
        }
    }
    auto text = apply(source_, messages, open_answer);
    KNAP_ASSERT(text.has_value(), "choose() checked that libllama knows this template");
    return *std::move(text);
}

}  // namespace knap
