// Chat formats that libllama knows by name and writes without a template.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

namespace knap {

std::vector<std::string> builtin_formats();  // alphabetical

// The template to use: the one given, which must be a name or look like Jinja, or the model's own
// if that is empty. Throws knap::Error when there is none.
std::string choose_template(std::string_view given, const std::string& own);

// A short conversation that shows how a format treats spaces, with or without a system message.
std::span<const ChatMessage> probe_conversation(bool has_system);
// The built-in format that writes it like this, with an answer opened. If two formats are alike,
// the alphabetically first.
std::optional<std::string> format_of(std::string_view written, bool has_system);

}  // namespace knap
