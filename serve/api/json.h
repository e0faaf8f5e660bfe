// JSON of requests and answers. Members keep their order, which matters in JSON schemas.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace knap {

using Json = nlohmann::ordered_json;

// Reads the JSON text of a request. Throws RequestError where it is not valid, nests deeper than 64
// levels, repeats a key in an object, or has more members than any request needs.
Json parse_request_json(std::string_view text);

// One line, valid UTF-8 whatever is in the strings: bad bytes become U+FFFD.
std::string to_text(const Json& value);

}  // namespace knap
