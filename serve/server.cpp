#include "serve/server.h"

#include "serve/api/error.h"

namespace knap {
namespace {

using Clock = std::chrono::steady_clock;

// How often overdue requests and the end of the last answer are looked for.
constexpr std::chrono::milliseconds kTick{100};
// For the last bytes of the last answers to leave.
constexpr std::chrono::seconds kFlush{2};

std::string error_body(int status, std::string_view message) {
    return to_text(to_json(plain_error(status, std::string(message))));
}

}  // namespace

Server::Server(const ServerConfig& config)
    : config_(config),
      http_(
          config.http,
          [this](const HttpRequest& head) { return check(head); },
          [this](std::shared_ptr<Exchange> exchange) { ready_.load()->handle(exchange); },
          [this](int status, std::string_view message) { return refusal(status, message); }) {}

void Server::serve(Engine& engine, const ServiceConfig& config) {
    service_ = std::make_unique<Service>(engine, config);
    routes_ = std::make_unique<Routes>(*service_, config_.access);
    ready_ = routes_.get();
}

std::optional<HttpResponse> Server::check(const HttpRequest& head) const {
    if (const Routes* routes = ready_.load()) {
        return routes->check(head);
    }
    return HttpResponse{.status = 503,
                        .body = error_body(503, "the model is loading"),
                        .headers = {{"Retry-After", "1"}}};
}

std::string Server::refusal(int status, std::string_view message) const {
    if (ready_.load() != nullptr) {
        service_->metrics.add_refusal(status);
    }
    return error_body(status, message);
}

std::string Server::address() const {
    const std::string& host = config_.http.host;
    const bool is_ipv6 = host.find(':') != host.npos;
    return concat("http://", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", ":", http_.port());
}

void Server::run() {
    http_.post([this] { tick_later(); });
    http_.run();
}

void Server::tick_later() {
    http_.after(kTick, [this] {
        tick();
        tick_later();
    });
}

void Server::tick() {
    const bool is_ready = ready_.load() != nullptr;
    if (is_ready) {
        service_->pool.expire_waiting();
        service_->periodic.run();
        service_->is_stopping = is_stopping_.load();
    }
    if (!is_stopping_) {
        return;
    }
    const bool is_idle = !is_ready || service_->pool.n_running() + service_->pool.n_waiting() == 0;
    const Clock::time_point now = Clock::now();
    if (is_idle || now >= end_) {
        http_.stop_accepting();
        if (http_.n_connections() == 0 || now >= end_ + kFlush) {
            http_.stop();
        }
    }
}

void Server::stop() {
    http_.post([this] {
        end_ = Clock::now() + config_.grace;
        is_stopping_ = true;
        tick();
    });
}

}  // namespace knap
