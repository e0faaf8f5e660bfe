// The target of a request line: "/v1/models?x=1".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace knap {

// Replaces "%41" by "A". nullopt for escapes that are not two hexadecimal digits, and for "%00".
std::optional<std::string> percent_decoded(std::string_view text);

struct RequestTarget {
    std::string path{};       // percent-decoded
    std::string query{};      // raw
    std::string authority{};  // of the form "http://authority/path", which proxies use
};

// nullopt: not a target that this server understands, or badly escaped.
std::optional<RequestTarget> parse_target(std::string_view target);

}  // namespace knap
