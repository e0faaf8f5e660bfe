// Turns the bytes of a connection into requests, within limits. Knows no sockets. (Beast parses;
// only request_reader.cpp includes it.)
#pragma once

#include <memory>
#include <string>

#include "serve/http/request.h"
#include "serve/http/server.h"

namespace knap {

// The message of status 413.
std::string too_long_body(const HttpLimits& limits);

class RequestReader {
  public:
    enum class Result {
        need_more,  // bytes
        head,       // the headers are complete; a body follows if has_body()
        complete,   // the request is complete
        refused,    // see status() and message(); nothing can be read after it
    };

    explicit RequestReader(const HttpLimits& limits);
    ~RequestReader();

    // Takes bytes from the front of `received`, up to the end of the headers or of the body. Each
    // request gives `head` and then `complete`. What is left belongs to the next request.
    Result read(std::string& received);

    // Nothing of a request has been read.
    bool is_at_start() const;

    // From `head` on.
    HttpRequest& request();
    bool has_body() const;
    // The body is announced as longer than the limit.
    bool is_body_too_long() const;
    bool keeps_alive() const;       // neither HTTP/1.0 nor "Connection: close"
    bool is_chunk_capable() const;  // not HTTP/1.0
    bool expects_continue() const;

    int status() const;
    const std::string& message() const;

    void start_next();  // after `complete`

  private:
    struct Impl;
    const HttpLimits limits_;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
