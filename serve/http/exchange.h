// One request and its answer. Any thread may call any member; what is sent leaves in the order of
// the calls. An exchange that is destroyed without an answer is answered with 500, and a stream
// that was not ended is broken.
#pragma once

#include <functional>
#include <string>

#include "serve/http/request.h"

namespace knap {

class Exchange {
  public:
    virtual ~Exchange() = default;

    virtual const HttpRequest& request() const = 0;

    // The whole answer. Exactly one of respond() and begin_stream() is called, once.
    virtual void respond(HttpResponse response) = 0;

    // Status and headers, and the body if there is one; what follows is sent in parts. While the
    // stream is silent, the comment ":\n\n" is sent every `HttpLimits::heartbeat`.
    virtual void begin_stream(HttpResponse head) = 0;
    virtual void send(std::string bytes) = 0;  // a part; dropped when the client is gone
    virtual void end_stream() = 0;             // the stream is complete
    // The stream must not look complete: what was sent before leaves, then the connection is closed
    // without the last chunk.
    virtual void break_stream() = 0;

    // The client has disconnected, or was cut off because it did not read.
    virtual bool is_gone() const = 0;
    // More than `HttpLimits::unsent_bytes` wait to be sent.
    virtual bool is_backlogged() const = 0;

    // Calls back on the I/O thread, once, when the client goes away or the server stops before the
    // answer is complete; at once if that has happened. (After the server's end: on this thread.)
    // The callback may hold the exchange: it is dropped when the answer is complete.
    virtual void on_gone(std::function<void()> callback) = 0;
};

}  // namespace knap
