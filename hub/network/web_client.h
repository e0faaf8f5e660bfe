// GET requests over HTTP and HTTPS: a fence around libcurl. Certificates are checked. Redirects are
// followed, but never from https to http, and the token goes to the host of the first address only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace knap {

struct WebOptions {
    std::string certificates{};       // file of the certificates to trust; empty: the system's
    int stall_s = 30;                 // without a byte for so long, a transfer is given up
    std::function<void()> on_wait{};  // called several times a second; may throw to give up
};

struct WebRequest {
    std::string url;
    std::string token{};           // empty: none is sent
    std::uint64_t first_byte = 0;  // asks for the rest from there on
};

struct WebResponse {
    int status = 0;                              // 0: none came
    std::map<std::string, std::string> headers;  // names in lower case
    std::string error_text;    // the beginning of the body where the status is not one of success
    std::string failure;       // why the transfer ended early; empty: it did not
    bool may_recover = false;  // another attempt may get further

    bool is_whole() const { return failure.empty() && status >= 200 && status < 300; }
    std::string header(const std::string& name) const;  // empty: there is none
};

// Receives the body of a response of success, with its status and headers. May throw, which ends
// the transfer.
using WebBody = std::function<void(const WebResponse&, std::span<const std::byte>)>;

class WebClient {
  public:
    explicit WebClient(WebOptions options);
    ~WebClient();
    WebClient(const WebClient&) = delete;
    WebClient& operator=(const WebClient&) = delete;

    WebResponse get(const WebRequest& request, const WebBody& on_body);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
