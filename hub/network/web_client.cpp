#include "hub/network/web_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <utility>

#include <curl/curl.h>

#include "knap/knap.h"

#include "base/error.h"

namespace knap {
namespace {

constexpr long kConnectSeconds = 15;
constexpr long kMaxRedirects = 5;
constexpr long kReceiveBuffer = 256 << 10;
constexpr int kPauseMs = 100;
constexpr std::size_t kMaxHeaders = 100;
constexpr std::size_t kMaxErrorText = 4096;

// What a busy or broken network causes. Anything else, such as a bad certificate, stays as it is.
constexpr std::array kPassingFailures{
    CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,   CURLE_PARTIAL_FILE,
    CURLE_OPERATION_TIMEDOUT,   CURLE_SSL_CONNECT_ERROR, CURLE_GOT_NOTHING,
    CURLE_SEND_ERROR,           CURLE_RECV_ERROR,        CURLE_HTTP2,
    CURLE_HTTP2_STREAM};

bool is_passing(int status) {
    return status == 408 || status == 429 || status >= 500;
}

struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};

struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

struct LibcurlUse {
    LibcurlUse() { curl_global_init(CURL_GLOBAL_DEFAULT); }
};

// What the callbacks of one transfer write to.
struct Transfer {
    CURL* easy = nullptr;
    const WebBody& on_body;
    WebResponse response{};
    std::exception_ptr thrown{};
};

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    return begin == text.npos ? ""
                              : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// Every response of a chain of redirects begins with a line of status: only the last one's headers
// are kept.
std::size_t take_header(const char* data, std::size_t, std::size_t size, void* into) {
    WebResponse& response = static_cast<Transfer*>(into)->response;
    const std::string_view line(data, size);
    const std::size_t colon = line.find(':');
    if (line.starts_with("HTTP/")) {
        response.headers.clear();
        response.error_text.clear();
    } else if (colon != line.npos && response.headers.size() < kMaxHeaders) {
        std::string name(line.substr(0, colon));
        std::ranges::transform(name, name.begin(),
                               [](unsigned char letter) { return std::tolower(letter); });
        response.headers.insert_or_assign(std::move(name), trimmed(line.substr(colon + 1)));
    }
    return size;
}

std::size_t take_body(const char* data, std::size_t, std::size_t size, void* into) {
    auto& transfer = *static_cast<Transfer*>(into);
    WebResponse& response = transfer.response;
    long status = 0;
    curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    if (status < 200 || status >= 300) {
        response.error_text.append(data,
                                   std::min(size, kMaxErrorText - response.error_text.size()));
        return size;
    }
    try {  // no exception may pass through libcurl
        transfer.on_body(response, std::as_bytes(std::span(data, size)));
    } catch (...) {
        transfer.thrown = std::current_exception();
        return 0;
    }
    return size;
}

}  // namespace

struct WebClient::Impl {
    WebOptions options;
    std::unique_ptr<CURL, FreeEasy> easy{curl_easy_init()};
    std::unique_ptr<CURLM, FreeMulti> multi{curl_multi_init()};
    std::array<char, CURL_ERROR_SIZE> message{};

    void set_up(const WebRequest& request, Transfer& transfer);
    CURLcode run();
};

void WebClient::Impl::set_up(const WebRequest& request, Transfer& transfer) {
    CURL* curl = easy.get();
    const bool is_encrypted = request.url.starts_with("https://");
    curl_easy_reset(curl);  // keeps connections
    message.front() = '\0';
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message.data());
    curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
    curl_easy_setopt(curl, CURLOPT_USERAGENT, concat("knap/", version()).c_str());
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_encrypted ? "https" : "http,https");
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kReceiveBuffer);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, long{options.stall_s});
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
    if (!options.certificates.empty()) {
        curl_easy_setopt(curl, CURLOPT_CAINFO, options.certificates.c_str());
    }
    if (!request.token.empty()) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, request.token.c_str());
    }
    if (request.first_byte > 0) {
        curl_easy_setopt(curl, CURLOPT_RANGE, concat(request.first_byte, "-").c_str());
    }
}

// With the multi interface, because a single transfer would not ask `on_wait` while nothing comes.
CURLcode WebClient::Impl::run() {
    struct Attached {  // until the function is left
        CURLM* multi;
        CURL* easy;
        ~Attached() { curl_multi_remove_handle(multi, easy); }
    };
    curl_multi_add_handle(multi.get(), easy.get());
    const Attached attached{multi.get(), easy.get()};
    int n_running = 1;
    while (n_running > 0) {
        curl_multi_perform(multi.get(), &n_running);
        if (options.on_wait) {
            options.on_wait();
        }
        if (n_running > 0) {
            curl_multi_poll(multi.get(), nullptr, 0, kPauseMs, nullptr);
        }
    }
    int n_left = 0;
    const CURLMsg* end = curl_multi_info_read(multi.get(), &n_left);
    return end != nullptr ? end->data.result : CURLE_FAILED_INIT;
}

std::string WebResponse::header(const std::string& name) const {
    const auto found = headers.find(name);
    return found != headers.end() ? found->second : "";
}

WebClient::WebClient(WebOptions options) {
    static const LibcurlUse use;
    impl_ = std::make_unique<Impl>(Impl{.options = std::move(options)});
}

WebClient::~WebClient() = default;

WebResponse WebClient::get(const WebRequest& request, const WebBody& on_body) {
    Transfer transfer{.easy = impl_->easy.get(), .on_body = on_body};
    impl_->set_up(request, transfer);
    const CURLcode result = impl_->run();
    if (transfer.thrown) {
        std::rethrow_exception(transfer.thrown);
    }
    WebResponse& response = transfer.response;
    long status = 0;
    curl_easy_getinfo(impl_->easy.get(), CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    if (result != CURLE_OK) {
        const char* message = impl_->message.data();
        response.failure = *message != '\0' ? message : curl_easy_strerror(result);
    }
    response.may_recover =
        result == CURLE_OK ? is_passing(response.status)
                           : std::ranges::find(kPassingFailures, result) != kPassingFailures.end();
    return std::move(transfer.response);
}

}  // namespace knap
