#include "text/builtin_formats.h"

#include <algorithm>
#include <array>

#include "llama.h"

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"

namespace knap {

namespace {

// The conversation in a built-in format.
std::string write_probe(const std::string& name, bool has_system) {
    std::vector<llama_chat_message> messages;
    for (const ChatMessage& message : probe_conversation(has_system)) {
        messages.push_back({message.role.c_str(), message.content.c_str()});
    }
    const auto write = [&](char* to, int space) {
        return llama_chat_apply_template(name.c_str(), messages.data(), messages.size(), true, to,
                                         space);
    };
    std::string text(static_cast<std::size_t>(std::max(write(nullptr, 0), 0)), '\0');
    write(text.data(), static_cast<int>(text.size()));
    return text;
}

}  // namespace

std::span<const ChatMessage> probe_conversation(bool has_system) {
    static const std::array<ChatMessage, 4> all = {{{"system", " Be brief. "},
                                                    {"user", " Hello "},
                                                    {"assistant", " Hi "},
                                                    {"user", " Why? "}}};
    return std::span(all).subspan(has_system ? 0 : 1);
}

std::optional<std::string> format_of(std::string_view written, bool has_system) {
    for (const std::string& name : builtin_formats()) {
        if (write_probe(name, has_system) == written) {
            return name;
        }
    }
    return std::nullopt;
}

std::vector<std::string> builtin_formats() {
    std::vector<const char*> names(llama_chat_builtin_templates(nullptr, 0));
    llama_chat_builtin_templates(names.data(), names.size());
    return {names.begin(), names.end()};
}

std::string choose_template(std::string_view given, const std::string& own) {
    if (given.empty()) {
        if (own.empty()) {
            fail("the model has no chat template: expected a name in `.chat_template`, found none");
        }
        return own;
    }
    const auto names = builtin_formats();
    const bool is_name = std::find(names.begin(), names.end(), given) != names.end();
    const bool is_jinja = given.find("{{") != given.npos || given.find("{%") != given.npos;
    if (!is_name && !is_jinja) {
        fail("`.chat_template`: expected Jinja or one of ", join(names, ", "), ", found ",
             in_quotes(given));
    }
    return std::string(given);
}

}  // namespace knap
