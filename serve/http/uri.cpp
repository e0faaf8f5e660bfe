#include "serve/http/uri.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace knap {

std::optional<std::string> percent_decoded(std::string_view text) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        unsigned byte = 0;
        const std::string_view digits = text.substr(i + 1, 2);
        const char* const end = digits.data() + digits.size();
        if (digits.size() < 2 || std::from_chars(digits.data(), end, byte, 16).ptr != end ||
            byte == 0) {
            return std::nullopt;
        }
        decoded += static_cast<char>(byte);
        i += 2;
    }
    return decoded;
}

std::optional<RequestTarget> parse_target(std::string_view target) {
    RequestTarget result;
    if (target == "*") {
        result.path = "*";
        return result;
    }
    constexpr std::string_view kScheme = "http://";
    if (target.starts_with(kScheme)) {
        target.remove_prefix(kScheme.size());
        const std::size_t slash = std::min(target.find_first_of("/?"), target.size());
        result.authority = target.substr(0, slash);
        target.remove_prefix(slash);
        if (result.authority.empty()) {
            return std::nullopt;
        }
    } else if (!target.starts_with('/')) {
        return std::nullopt;
    }
    const auto is_invisible = [](unsigned char c) { return c <= 0x20 || c >= 0x7f; };
    if (std::ranges::any_of(target, is_invisible) || target.find('#') != target.npos) {
        return std::nullopt;
    }
    const std::size_t mark = target.find('?');
    const auto path = percent_decoded(target.substr(0, mark));
    if (!path) {
        return std::nullopt;
    }
    result.path = path->empty() ? "/" : *path;
    if (mark != target.npos) {
        result.query = target.substr(mark + 1);
    }
    return result;
}

}  // namespace knap
