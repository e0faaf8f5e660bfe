#include "text/builtin_formats.h"

#include <algorithm>
#include <array>
#include <optional>

#include "llama.h"

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"

namespace knap {

namespace {

// A conversation in the format, or nullopt when libllama does not recognise it.
std::optional<std::string> write_probe(const std::string& source) {
    constexpr std::array<llama_chat_message, 4> kProbe = {{{"system", " Be brief. "},
                                                           {"user", " Hello "},
                                                           {"assistant", " Hi "},
                                                           {"user", " Why? "}}};
    const auto write = [&](char* to, int space) {
        return llama_chat_apply_template(source.c_str(), kProbe.data(), kProbe.size(), true, to,
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

}  // namespace

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

std::string format_name(const std::string& chat_template) {
    if (chat_template.empty()) {
        return "";
    }
    // libllama does not report what it recognised. Compare what the known formats write.
    if (const auto written = write_probe(chat_template)) {
        for (const std::string& name : builtin_formats()) {
            if (write_probe(name) == written) {
                return name;
            }
        }
    }
    return "jinja";
}

}  // namespace knap
