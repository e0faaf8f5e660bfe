// Joining values into a message, and taking lists apart. (std::format is not in every compiler that
// we build with.)
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

// The texts of `elements` with `separator` between them. `text_of` gives the text of an element: a
// member, or a function.
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

// What stands before, between and after the separators: one part more than there are of those, so
// "" has one, an empty one. The parts are views of `text`.
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
