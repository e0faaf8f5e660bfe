// An HTTP/1.1 server: connections, limits, timeouts, streams. One thread does all input and output
// and must not compute: handlers pass requests on to other threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/exchange.h"
#include "serve/http/request.h"

namespace knap {

struct HttpLimits {
    std::size_t body_bytes = std::size_t{32} << 20;  // beyond: 413
    std::size_t uri_bytes = std::size_t{8} << 10;    // beyond: 414
    std::size_t header_bytes = std::size_t{16}
                               << 10;  // of header lines with line ends; beyond: 431
    int header_count = 100;            // beyond: 431

    std::chrono::milliseconds header_time{10'000};  // for the request line and headers; beyond: 408
    std::chrono::milliseconds body_time{30'000};    // for the body; beyond: 408
    std::chrono::milliseconds keep_alive{
        60'000};  // between requests; then the connection is closed

    std::size_t unsent_bytes = std::size_t{1} << 20;  // beyond, Exchange::is_backlogged()
    std::chrono::milliseconds unsent_time{60'000};    // the client takes nothing: it is cut off
    std::chrono::milliseconds heartbeat{15'000};      // of silence in a stream: a comment is sent
};

struct HttpConfig {
    std::string host = "127.0.0.1";  // an address or a name; every address of a name is served
    int port = 8080;                 // 0: any free one
    HttpLimits limits{};
};

// Called on the I/O thread when the headers are complete, before the body is read. A response
// answers the request, and closes the connection if the request has a body. nullopt: go on.
using HeaderCheck = std::function<std::optional<HttpResponse>(const HttpRequest& head)>;

// Called on the I/O thread with a complete request; must return quickly. After an exception the
// request is answered with 500.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

// The JSON body of errors that HTTP itself finds: 400, 408, 413, 414, 417, 431, 500. Called on any
// thread.
using ErrorBody = std::function<std::string(int status, std::string_view message)>;

class HttpServer {
  public:
    // Binds and listens. Throws knap::Error if it cannot: unknown host, address in use, ...
    HttpServer(HttpConfig config, HeaderCheck check, Handler handler, ErrorBody error_body);
    // run() must have returned. Exchanges may live longer; they are gone.
    ~HttpServer();

    int port() const;

    // The I/O loop, on the calling thread, until stop(). Called once.
    void run();

    // Run a task on the I/O thread, now or later. Any thread. Tasks that are left when run() ends
    // are dropped.
    void post(std::function<void()> task);
    void after(std::chrono::milliseconds delay, std::function<void()> task);

    // Any thread, though no signal handler. Closes the listening sockets and idle connections.
    // Requests under way are answered with "Connection: close".
    void stop_accepting();
    // Ends run(): closes every connection; their exchanges are gone. May be called before run() and
    // more than once.
    void stop();

    int n_connections() const;  // any thread

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
