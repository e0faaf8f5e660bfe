// Which handler answers a request, and which requests are refused before one is asked.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "serve/access.h"
#include "serve/http/exchange.h"
#include "serve/service.h"

namespace knap {

// Answers a request: GET on the I/O thread, POST on a thread for short work. What it throws becomes
// the answer: RequestError its error, anything else 500.
using RouteHandler = void (*)(Service&, const std::shared_ptr<Exchange>&);

struct Route {
    std::string_view method;  // GET also answers HEAD
    std::string_view path;    // one that ends in "/*" stands for every longer path
    RouteHandler handler;
};

class Routes {
  public:
    // `service` must outlive the object.
    Routes(Service& service, const AccessConfig& access);

    // On the I/O thread, from the headers alone.
    std::optional<HttpResponse> check(const HttpRequest& head) const;
    // On the I/O thread; passes the request on.
    void handle(const std::shared_ptr<Exchange>& exchange) const;

  private:
    std::optional<ApiError> refuse(const HttpRequest& head) const;
    void answer(const Route& route, const std::shared_ptr<Exchange>& exchange) const;

    Service& service_;
    Access access_;
};

// The endpoints, each with its aliases.
std::span<const Route> routes();

}  // namespace knap
