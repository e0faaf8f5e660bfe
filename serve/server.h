// `knap serve`: one model behind HTTP, from the first connection to the last.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "knap/knap.h"

#include "serve/http/server.h"
#include "serve/routes.h"
#include "serve/service.h"

namespace knap {

struct ServerConfig {
    HttpConfig http{};
    AccessConfig access{};
    std::chrono::seconds grace{30};  // for answers under way when the server stops
};

class Server {
  public:
    // Listens. Throws knap::Error if it cannot.
    explicit Server(const ServerConfig& config);

    std::string address() const;  // "http://127.0.0.1:8080"

    // Input and output, on the calling thread, until stop() has done its work. Requests before
    // serve() are answered with 503: the model is loading.
    void run();
    // Answers requests with this model from now on. Called once, while run() runs or before, on any
    // thread. `engine` must outlive the object.
    void serve(Engine& engine, const ServiceConfig& config);
    // Refuses new requests, gives those under way the time of grace, then ends run(). Any thread,
    // though no signal handler.
    void stop();

    const Service* service() const { return service_.get(); }  // null before serve()

  private:
    void tick();
    void tick_later();
    std::optional<HttpResponse> check(const HttpRequest& head) const;
    // The body of an error that HTTP itself finds, which is counted.
    std::string refusal(int status, std::string_view message) const;

    ServerConfig config_;
    std::unique_ptr<Routes> routes_;  // which tasks of the service use
    std::unique_ptr<Service> service_;
    std::atomic<Routes*> ready_ = nullptr;  // `routes_`, once they may be used
    std::atomic<bool> is_stopping_ = false;
    HttpServer http_;
    std::chrono::steady_clock::time_point end_{};  // of the grace; only on the I/O thread
};

}  // namespace knap
