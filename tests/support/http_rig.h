// An HTTP server on a thread of its own, with a client's view of it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "serve/http/server.h"
#include "support/http_client.h"

namespace knap::test {

class HttpRig {
  public:
    // Serves `handler`; nullptr: echo.
    explicit HttpRig(Handler handler = nullptr,
                     HttpLimits limits = {},
                     HeaderCheck check = nullptr);
    ~HttpRig();  // stops

    HttpServer server;
    void stop();  // returns when run() has

  private:
    std::thread thread_;
};

// "METHOD path?query body"
void echo(const std::shared_ptr<Exchange>& exchange);
std::string test_error_body(int status, std::string_view message);

// Waits until `condition` holds, for at most ten seconds.
bool eventually(const std::function<bool()>& condition);

}  // namespace knap::test
