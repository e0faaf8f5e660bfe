#include "support/http_rig.h"

#include <utility>

namespace knap::test {

HttpRig::HttpRig(Handler handler, HttpLimits limits, HeaderCheck check)
    : server({.port = 0, .limits = limits},
             std::move(check),
             handler ? std::move(handler) : Handler(echo),
             test_error_body),
      thread_([this] { server.run(); }) {}

HttpRig::~HttpRig() {
    stop();
}

void HttpRig::stop() {
    server.stop();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void echo(const std::shared_ptr<Exchange>& exchange) {
    const HttpRequest& request = exchange->request();
    exchange->respond(
        {.content_type = "text/plain",
         .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
}

std::string test_error_body(int status, std::string_view message) {
    return "error " + std::to_string(status) + ": " + std::string(message);
}

bool eventually(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace knap::test
