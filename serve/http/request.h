// A request as it was received, and an answer to it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace knap {

// Names and values. Names of a request are in lower case.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
    std::string method{};  // as sent: "GET", "HEAD", "POST", ...
    std::string path{};    // percent-decoded once; "*" for "OPTIONS *"
    std::string query{};   // raw, after the '?'
    std::string body{};    // chunks joined
    HttpHeaders headers{};
    std::string id{};  // x-request-id: the client's if it is 1..128 printable characters, else made

    // Lines of the same name are joined by ", ". "" when absent. The case of `name` does not
    // matter.
    std::string header(std::string_view name) const;
    bool has_header(std::string_view name) const;

    // The percent-decoded value ('+' is a space) of the first parameter of this name; "" when
    // absent or badly escaped.
    std::string query_value(std::string_view name) const;
};

struct HttpResponse {
    int status = 200;
    std::string content_type = "application/json";  // "": none
    std::string body{};
    // Further headers. The server writes Connection, Content-Length, Content-Type, Server,
    // Transfer-Encoding and x-request-id by itself, and leaves them out here. Control characters in
    // values become spaces.
    HttpHeaders headers{};
};

}  // namespace knap
