#include "serve/http/response_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <boost/beast/http/status.hpp>

#include "serve/http/header_name.h"

namespace knap {

namespace {

bool is_name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_written_by_server(std::string_view name) {
    constexpr std::array<std::string_view, 6> kNames{"connection",        "content-length",
                                                     "content-type",      "server",
                                                     "transfer-encoding", "x-request-id"};
    return std::ranges::find(kNames, lower_case(name)) != kNames.end();
}

void add_line(std::string& text, std::string_view name, std::string_view value) {
    text.append(name).append(": ");
    for (const char c : value) {
        const auto byte = static_cast<unsigned char>(c);
        text += byte < 0x20 || byte == 0x7f ? ' ' : c;
    }
    text += "\r\n";
}

}  // namespace

bool is_bodiless(int status) {
    return status < 200 || status == 204 || status == 304;
}

std::string head_text(const HttpResponse& response, const ResponseHead& head) {
    const auto reason =
        boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(response.status));
    std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
    text.append(reason.data(), reason.size()).append("\r\n");
    add_line(text, "Server", "knap");
    add_line(text, "x-request-id", head.request_id);
    add_line(text, "Connection", head.keeps_alive ? "keep-alive" : "close");
    if (!is_bodiless(response.status)) {
        if (!response.content_type.empty()) {
            add_line(text, "Content-Type", response.content_type);
        }
        if (head.framing == BodyFraming::length) {
            add_line(text, "Content-Length", std::to_string(response.body.size()));
        } else if (head.framing == BodyFraming::chunks) {
            add_line(text, "Transfer-Encoding", "chunked");
        }
    }
    for (const auto& [name, value] : response.headers) {
        if (!name.empty() && std::ranges::all_of(name, is_name_character) &&
            !is_written_by_server(name)) {
            add_line(text, name, value);
        }
    }
    return text += "\r\n";
}

std::string chunk_text(std::string_view bytes) {
    std::array<char, 16> digits;
    char* const end =
        std::to_chars(digits.data(), digits.data() + digits.size(), bytes.size(), 16).ptr;
    std::string text(digits.data(), end);
    return text.append("\r\n").append(bytes).append("\r\n");
}

}  // namespace knap
