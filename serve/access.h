// Who may ask: API keys, the Host header, and the pages of other origins (CORS).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api/error.h"
#include "serve/http/request.h"

namespace knap {

struct AccessConfig {
    std::vector<std::string> keys{};          // empty: everybody may ask
    std::vector<std::string> cors_origins{};  // beside those of this machine
    std::string host = "127.0.0.1";           // that the server listens on
};

// True for an address or name that only this machine can reach: 127.0.0.1, ::1, localhost.
bool is_loopback(std::string_view host);

// The key that a request carries, known or not; empty: none.
std::string key_of(const HttpRequest& request);

class Access {
  public:
    explicit Access(const AccessConfig& config);

    // Why a request is refused; nullopt: it may go on. Looks at headers only.
    std::optional<ApiError> refuse(const HttpRequest& request) const;
    // Headers that let a page of the request's origin read the answer; none for foreign origins.
    HttpHeaders cors_headers(const HttpRequest& request) const;
    // The answer to OPTIONS, without `Allow`.
    HttpResponse preflight(const HttpRequest& request) const;

  private:
    using Digest = std::array<std::uint64_t, 4>;

    bool is_known_host(std::string_view header) const;
    bool has_key(const HttpRequest& request) const;
    bool is_known_key(std::string_view key) const;
    bool allows_origin(std::string_view origin) const;
    Digest digest(std::string_view key) const;

    AccessConfig config_;
    std::array<std::uint64_t, 4> salt_;  // random, so that digests cannot be computed elsewhere
    std::vector<Digest> digests_;
};

}  // namespace knap
