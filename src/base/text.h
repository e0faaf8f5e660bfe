// Joins values into messages and splits lists. (Some compilers we support lack std::format.)
#pragma once

#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace knap {

template <typename... Parts>
std::string concat(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

// Joins the texts of `elements` with `separator`. `text_of` maps an element to its text; it is a
// member pointer or a function.
template <typename Elements, typename TextOf = std::identity>
std::string join(const Elements& elements, std::string_view separator, TextOf text_of = {}) {
    std::ostringstream out;
    std::string_view before;
    for (const auto& element : elements) {
        out << before << std::invoke(text_of, element);
        before = separator;
    }
    return out.str();
}

// Splits `text` at every separator. The parts are views of `text` and may be empty; "" gives one
// empty part.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

}  // namespace knap
