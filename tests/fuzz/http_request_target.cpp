#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "serve/http/request_reader.h"
#include "serve/http/response_text.h"

namespace knap::fuzz::http_request_target_parts {
namespace {

// Small, so that inputs reach them.
const HttpLimits& limits() {
    static const HttpLimits small{
        .body_bytes = 512, .uri_bytes = 128, .header_bytes = 512, .header_count = 12};
    return small;
}

// An answer that repeats what the client sent adds no line.
void answer(const HttpRequest& request) {
    HttpResponse response{.content_type = request.header("content-type"), .body = request.body};
    for (const auto& [name, value] : request.headers) {
        response.headers.emplace_back("x-" + name, value);
        response.headers.emplace_back(value, name);
    }
    const std::string head = head_text(response, {.request_id = request.id});
    expect(head.ends_with("\r\n\r\n") && head.find("\r\n\r\n") + 4 == head.size(),
           "headers end with the only empty line");
}

std::string describe(RequestReader& reader) {
    const HttpRequest& request = reader.request();
    std::string text = request.method + " " + request.path + "?" + request.query;
    for (const auto& [name, value] : request.headers) {
        text += "\n" + name + ": " + value;
    }
    request.query_value("q");
    return text + (reader.keeps_alive() ? "\n+" : "\n-") + (reader.has_body() ? "body" : "") +
           (reader.expects_continue() ? "continue" : "");
}

// What a reader makes of bytes that arrive in parts. As a connection does, it reads no body that is
// too long, and nothing after a request that ends the connection.
std::string requests_in(std::string_view bytes, Choices choices, std::uint32_t largest_part) {
    RequestReader reader(limits());
    std::string received;
    std::string seen;
    while (!bytes.empty()) {
        const std::size_t n = std::min<std::size_t>(1 + choices.below(largest_part), bytes.size());
        received += bytes.substr(0, n);
        bytes.remove_prefix(n);
        for (;;) {
            const RequestReader::Result result = reader.read(received);
            if (result == RequestReader::Result::need_more) {
                break;
            }
            if (result == RequestReader::Result::refused) {
                expect(reader.status() >= 400 && reader.status() < 500, "a fault of the client");
                return seen + "refused: " + std::to_string(reader.status()) + reader.message();
            }
            if (result == RequestReader::Result::head) {
                seen += describe(reader);
                if (reader.is_body_too_long()) {
                    return seen + "\ntoo long";
                }
                continue;
            }
            expect(reader.request().body.size() <= limits().body_bytes, "a body has a limit");
            answer(reader.request());
            seen += "\n" + reader.request().body + "\n\n";
            if (!reader.keeps_alive()) {
                return seen;
            }
            reader.start_next();
        }
    }
    return seen + (reader.is_at_start() ? "" : "incomplete");
}

// Eight bytes say in which parts the rest arrives.
void run(std::string_view input) {
    const Choices choices(input.substr(0, 8));
    const std::string_view bytes = input.substr(std::min<std::size_t>(input.size(), 8));
    const std::string at_once = requests_in(bytes, Choices("\xfe"), 0xff);
    expect(requests_in(bytes, choices, 64) == at_once, "requests do not depend on how they arrive");
    expect(requests_in(bytes, Choices(""), 1) == at_once, "nor when byte after byte arrives");
}

std::vector<std::string> seeds() {
    std::vector<std::string> all;
    for (const char* test :
         {"tests/serve/http/request_reader_test.cpp", "tests/serve/http/connection_test.cpp",
          "tests/serve/http/server_test.cpp", "tests/serve/http/stream_test.cpp"}) {
        for (const std::string& text : with_any(string_literals(test), {"HTTP/1."})) {
            all.push_back("\1\5\20\3\7\100\2\31" + text);
            all.push_back("\1\5\20\3\7\100\2\31" + text + "Host: a\r\n\r\n");
        }
        for (const std::string& text : with_any(string_literals(test), {"\r\n"})) {
            all.push_back(
                "\1\5\20\3\7\100\2\31POST /v1/chat/completions?q=%41 HTTP/1.1\r\nHost: a\r\n" +
                text + "\r\n");
        }
    }
    for (const std::string& text : deep_and_long()) {
        all.push_back("\1\5\20\3\7\100\2\31GET /" + text);
        all.push_back("\1\5\20\3\7\100\2\31GET / HTTP/1.1\r\nHost: a\r\nX: " + text);
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::http_request_target_parts

knap::fuzz::Target knap::fuzz::http_request_target() {
    using namespace http_request_target_parts;
    return {.name = "http_request",
            .run = run,
            .seeds = seeds,
            .max_bytes = 2048,
            .word_sources = {"serve/http/request_reader.cpp", "tests/serve/http/uri_test.cpp",
                             "tests/serve/http/request_reader_test.cpp"}};
}
