// Chat formats that libllama knows by name and writes without a template.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace knap {

std::vector<std::string> builtin_formats();  // alphabetical

// The template to use: the one given, which must be a name or look like Jinja, or the model's own
// if that is empty. Throws knap::Error when there is none.
std::string choose_template(std::string_view given, const std::string& own);

// The name of the format that a template text writes, as far as libllama recognises it; "jinja" for
// other templates, empty for an empty text. If two formats are alike, the alphabetically first.
std::string format_name(const std::string& chat_template);

}  // namespace knap
