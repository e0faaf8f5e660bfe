#include "serve/routes.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/log.h"
#include "serve/api/error.h"
#include "serve/handlers.h"
#include "serve/http/header_name.h"

namespace knap {
namespace {

constexpr std::array kRoutes{
    Route{"GET", "/", answer_page},
    Route{"GET", "/page/*", answer_page},
    Route{"GET", "/health", answer_health},
    Route{"GET", "/v1/health", answer_health},
    Route{"GET", "/v1/models", answer_models},
    Route{"GET", "/models", answer_models},
    Route{"GET", "/v1/models/*", answer_model},
    Route{"POST", "/v1/chat/completions", answer_chat},
    Route{"POST", "/chat/completions", answer_chat},
    Route{"POST", "/v1/completions", answer_text},
    Route{"POST", "/completions", answer_text},
    Route{"POST", "/completion", answer_native},
    Route{"GET", "/metrics", answer_metrics},
    Route{"GET", "/props", answer_props},
    Route{"GET", "/slots", answer_slots},
    Route{"GET", "/openapi.json", answer_openapi},
    Route{"POST", "/tokenize", answer_tokenize},
    Route{"POST", "/detokenize", answer_detokenize},
    Route{"POST", "/apply-template", answer_apply_template},
};

bool matches(const Route& route, std::string_view path) {
    if (route.path.ends_with("/*")) {
        const std::string_view start = route.path.substr(0, route.path.size() - 1);
        return path.starts_with(start) && path.size() > start.size();
    }
    return route.path == path;
}

bool matches_method(const Route& route, std::string_view method) {
    return route.method == method || (route.method == "GET" && method == "HEAD");
}

// The methods of a path, as in "GET, HEAD, OPTIONS"; empty: no such path.
std::string allowed_methods(std::string_view path) {
    std::set<std::string> methods;
    for (const Route& route : routes()) {
        if (matches(route, path)) {
            methods.emplace(route.method);
            if (route.method == "GET") {
                methods.emplace("HEAD");
            }
        }
    }
    if (!methods.empty()) {
        methods.emplace("OPTIONS");
    }
    return join(methods, ", ");
}

HttpResponse with_headers(HttpResponse response, const HttpHeaders& headers) {
    response.headers.insert(response.headers.end(), headers.begin(), headers.end());
    return response;
}

// Adds the headers of the request's origin to whatever a handler answers.
class OpenToOrigin : public Exchange {
  public:
    OpenToOrigin(std::shared_ptr<Exchange> inner, HttpHeaders headers)
        : inner_(std::move(inner)), headers_(std::move(headers)) {}

    const HttpRequest& request() const override { return inner_->request(); }
    void respond(HttpResponse response) override {
        inner_->respond(with_headers(std::move(response), headers_));
    }
    void begin_stream(HttpResponse head) override {
        inner_->begin_stream(with_headers(std::move(head), headers_));
    }
    void send(std::string bytes) override { inner_->send(std::move(bytes)); }
    void end_stream() override { inner_->end_stream(); }
    void break_stream() override { inner_->break_stream(); }
    bool is_gone() const override { return inner_->is_gone(); }
    bool is_backlogged() const override { return inner_->is_backlogged(); }
    void on_gone(std::function<void()> callback) override { inner_->on_gone(std::move(callback)); }

  private:
    std::shared_ptr<Exchange> inner_;
    HttpHeaders headers_;
};

HttpResponse error_response(const ApiError& error) {
    return {.status = error.status, .body = to_text(to_json(error)), .headers = error.headers};
}

bool is_json(std::string_view content_type) {
    const std::string_view type = content_type.substr(0, content_type.find(';'));
    const std::size_t end = type.find_last_not_of(" \t");
    return end != type.npos && lower_case(type.substr(0, end + 1)) == "application/json";
}

}  // namespace

std::span<const Route> routes() {
    return kRoutes;
}

Routes::Routes(Service& service, const AccessConfig& access) : service_(service), access_(access) {}

std::optional<HttpResponse> Routes::check(const HttpRequest& head) const {
    if (head.method == "OPTIONS") {
        return with_headers(access_.preflight(head), {{"Allow", allowed_methods(head.path)}});
    }
    const std::optional<ApiError> error = refuse(head);
    if (!error) {
        return std::nullopt;
    }
    service_.metrics.add_refusal(error->status);
    return with_headers(error_response(*error), access_.cors_headers(head));
}

std::optional<ApiError> Routes::refuse(const HttpRequest& head) const {
    if (auto error = access_.refuse(head)) {
        return error;
    }
    const std::string methods = allowed_methods(head.path);
    if (methods.empty()) {
        return plain_error(
            404, "no such endpoint; GET /v1/models and POST /v1/chat/completions are two");
    }
    if (std::ranges::none_of(routes(), [&](const Route& route) {
            return matches(route, head.path) && matches_method(route, head.method);
        })) {
        ApiError error = plain_error(405, concat("expected one of the methods ", methods));
        error.headers = {{"Allow", methods}};
        return error;
    }
    if (head.method == "POST" && !is_json(head.header("content-type"))) {
        return plain_error(415,
                           "expected a JSON body: with curl, -H 'Content-Type: application/json'");
    }
    if (head.has_header("content-encoding") && head.header("content-encoding") != "identity") {
        return plain_error(415, "`Content-Encoding`: expected none");
    }
    if (service_.is_stopping && head.method == "POST") {
        ApiError error = plain_error(503, "the server is stopping");
        error.headers = {{"Retry-After", "1"}};
        return error;
    }
    return std::nullopt;
}

void Routes::handle(const std::shared_ptr<Exchange>& exchange) const {
    const HttpRequest& request = exchange->request();
    const auto route = std::ranges::find_if(routes(), [&](const Route& one) {
        return matches(one, request.path) && matches_method(one, request.method);
    });
    const std::shared_ptr<Exchange> open =
        std::make_shared<OpenToOrigin>(exchange, access_.cors_headers(request));
    // A state is read in microseconds, and must be readable while every other thread is busy.
    if (route->method == "GET") {
        answer(*route, open);
    } else {
        service_.tasks.post([this, open, &route = *route] { answer(route, open); });
    }
}

void Routes::answer(const Route& route, const std::shared_ptr<Exchange>& exchange) const {
    ApiError error;
    try {
        route.handler(service_, exchange);
        return;
    } catch (const RequestError& refusal) {
        error = refusal.error();
    } catch (const std::exception& failure) {
        log_warning("request ", exchange->request().id, " failed: ", failure.what());
        error = plain_error(500, "internal error");
    }
    service_.metrics.add_refusal(error.status);
    exchange->respond(error_response(error));
}

}  // namespace knap
