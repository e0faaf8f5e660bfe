#include "text/builtin_formats.h"

#include <array>
#include <optional>

#include "llama.h"

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
