#include "serve/http/request.h"

#include <algorithm>

#include "base/text.h"
#include "serve/http/header_name.h"
#include "serve/http/uri.h"

namespace knap {

std::string HttpRequest::header(std::string_view name) const {
    const std::string wanted = lower_case(name);
    std::string joined;
    bool is_first = true;
    for (const auto& [line_name, value] : headers) {
        if (line_name == wanted) {
            joined += (is_first ? "" : ", ") + value;
            is_first = false;
        }
    }
    return joined;
}

bool HttpRequest::has_header(std::string_view name) const {
    const std::string wanted = lower_case(name);
    return std::ranges::any_of(headers, [&](const auto& line) { return line.first == wanted; });
}

std::string HttpRequest::query_value(std::string_view name) const {
    for (const std::string_view parameter : split(query, '&')) {
        const std::size_t equals = std::min(parameter.find('='), parameter.size());
        if (percent_decoded(parameter.substr(0, equals)) != name) {
            continue;
        }
        std::string value(parameter.substr(std::min(equals + 1, parameter.size())));
        std::ranges::replace(value, '+', ' ');
        return percent_decoded(value).value_or("");
    }
    return "";
}

}  // namespace knap
