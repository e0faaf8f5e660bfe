#include "serve/access.h"

#include <algorithm>
#include <random>

#include <arpa/inet.h>

#include "base/text.h"

namespace knap {
namespace {

// What a browser loads by itself, for which it must ask its user.
bool is_page(std::string_view path) {
    return path == "/" || path.starts_with("/page/");
}

// "localhost:8080" and "[::1]:8080" without the port.
std::string_view without_port(std::string_view host) {
    if (host.starts_with('[')) {
        const std::size_t end = host.find(']');
        return end == host.npos ? host : host.substr(1, end - 1);
    }
    return std::ranges::count(host, ':') == 1 ? host.substr(0, host.find(':')) : host;
}

std::string lower(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char letter) {
        return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
    });
    return out;
}

// Four numbers. A name such as 127.0.0.1.example.org begins like an address, and is anybody's.
bool is_ipv4(const std::string& text) {
    in_addr address;
    return inet_pton(AF_INET, text.c_str(), &address) == 1;
}

// "http://localhost:3000": the part between scheme and port.
std::string_view host_of_origin(std::string_view origin) {
    const std::size_t at = origin.find("://");
    return at == origin.npos ? std::string_view() : without_port(origin.substr(at + 3));
}

std::string decode_base64(std::string_view text) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    std::uint32_t bits = 0;
    int n_bits = 0;
    for (const char letter : text) {
        const std::size_t digit = kDigits.find(letter);
        if (digit == kDigits.npos) {
            break;
        }
        bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xffffff;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out += static_cast<char>(bits >> n_bits & 0xff);
        }
    }
    return out;
}

}  // namespace

// A browser shows the page with Basic credentials, whose password is the key.
std::string key_of(const HttpRequest& request) {
    const std::string authorization = request.header("authorization");
    const std::string scheme = lower(authorization.substr(0, authorization.find(' ')));
    const std::size_t start = authorization.find_first_not_of(' ', scheme.size());
    const std::string value = start == authorization.npos ? "" : authorization.substr(start);
    if (scheme == "bearer") {
        return value;
    }
    if (scheme == "basic") {
        const std::string credentials = decode_base64(value);
        const std::size_t colon = credentials.find(':');
        return colon == credentials.npos ? "" : credentials.substr(colon + 1);
    }
    return request.header("x-api-key");
}

bool is_loopback(std::string_view host) {
    const std::string name = lower(host);
    return name == "localhost" || name == "::1" || (name.starts_with("127.") && is_ipv4(name));
}

Access::Access(const AccessConfig& config) : config_(config) {
    std::random_device device;
    for (std::uint64_t& word : salt_) {
        word = std::uint64_t{device()} << 32 | device();
    }
    for (const std::string& key : config_.keys) {
        digests_.push_back(digest(key));
    }
}

std::optional<ApiError> Access::refuse(const HttpRequest& request) const {
    if (!is_known_host(request.header("host"))) {
        return ApiError{.status = 403,
                        .message = "`Host`: expected a name of this machine, found another",
                        .type = "authentication_error"};
    }
    if (request.path == "/health" || request.path == "/v1/health" || has_key(request)) {
        return std::nullopt;
    }
    const char* scheme =
        is_page(request.path) ? "Basic realm=\"knap\", charset=\"UTF-8\"" : "Bearer";
    return ApiError{.status = 401,
                    .message =
                        "expected a valid API key as \"Authorization: Bearer KEY\", found "
                        "none or another",
                    .type = "authentication_error",
                    .code = "invalid_api_key",
                    .headers = {{"WWW-Authenticate", scheme}}};
}

// A page of another site may point its own name at this machine (DNS rebinding). Its requests carry
// that name.
bool Access::is_known_host(std::string_view header) const {
    const std::string host = lower(without_port(header));
    return header.empty() || !is_loopback(config_.host) || is_loopback(host) ||
           host == lower(config_.host);
}

bool Access::has_key(const HttpRequest& request) const {
    return digests_.empty() || is_known_key(key_of(request));
}

// Compares with every key, all of it, so that the time tells nothing.
bool Access::is_known_key(std::string_view key) const {
    const Digest asked = digest(key);
    bool is_known = false;
    for (const Digest& known : digests_) {
        std::uint64_t difference = 0;
        for (std::size_t i = 0; i < known.size(); ++i) {
            difference |= known[i] ^ asked[i];
        }
        is_known |= difference == 0;
    }
    return is_known;
}

// Four lanes of a multiply-xor hash with a secret start. What counts is that texts of any length
// become numbers of one length that nobody outside can compute.
Access::Digest Access::digest(std::string_view key) const {
    Digest words = salt_;
    for (std::size_t lane = 0; lane < words.size(); ++lane) {
        for (const char byte : key) {
            words[lane] = (words[lane] ^ static_cast<unsigned char>(byte)) * 0x9E3779B97F4A7C15ull;
            words[lane] ^= words[lane] >> 29;
        }
        words[lane] = (words[lane] ^ key.size()) * 0xBF58476D1CE4E5B9ull;
        words[lane] ^= words[lane] >> 32;
    }
    return words;
}

bool Access::allows_origin(std::string_view origin) const {
    return is_loopback(host_of_origin(origin)) ||
           std::ranges::find(config_.cors_origins, origin) != config_.cors_origins.end();
}

HttpHeaders Access::cors_headers(const HttpRequest& request) const {
    const std::string origin = request.header("origin");
    HttpHeaders headers{{"Vary", "Origin"}};
    if (!origin.empty() && allows_origin(origin)) {
        headers.emplace_back("Access-Control-Allow-Origin", origin);
        headers.emplace_back("Access-Control-Expose-Headers",
                             "x-request-id, retry-after, retry-after-ms");
    }
    return headers;
}

HttpResponse Access::preflight(const HttpRequest& request) const {
    HttpResponse response{.status = 204, .content_type = "", .headers = cors_headers(request)};
    if (response.headers.size() > 1) {  // beside `Vary`: the origin may ask
        response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
        response.headers.emplace_back("Access-Control-Allow-Headers",
                                      "authorization, content-type, x-api-key, x-request-id");
        response.headers.emplace_back("Access-Control-Max-Age", "600");
    }
    return response;
}

}  // namespace knap
