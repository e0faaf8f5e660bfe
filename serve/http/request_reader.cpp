#include "serve/http/request_reader.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>

#include "base/text.h"
#include "serve/http/head_scanner.h"
#include "serve/http/header_name.h"
#include "serve/http/request_id.h"
#include "serve/http/uri.h"

namespace knap {

namespace http = boost::beast::http;
using boost::beast::iequals;
using boost::system::error_code;

namespace {

// A body that grows with the bytes that arrive. (Beast's string_body reserves what Content-Length
// announces.)
struct GrowingBody {
    using value_type = std::string;

    class reader {
      public:
        template <bool is_request, typename Fields>
        reader(http::header<is_request, Fields>&, std::string& text) : text_(text) {}

        void init(const boost::optional<std::uint64_t>&, error_code& error) { error = {}; }

        template <typename Buffers>
        std::size_t put(const Buffers& buffers, error_code& error) {
            error = {};
            const std::size_t n_before = text_.size();
            for (auto part = boost::asio::buffer_sequence_begin(buffers);
                 part != boost::asio::buffer_sequence_end(buffers); ++part) {
                text_.append(static_cast<const char*>(part->data()), part->size());
            }
            return text_.size() - n_before;
        }

        void finish(error_code& error) { error = {}; }

      private:
        std::string& text_;
    };
};

using Parser = http::request_parser<GrowingBody>;

// Of chunk headers and trailers, which Beast wants whole.
constexpr std::size_t kMaxUnparsedBytes = std::size_t{16} << 10;
// Of "0\r\n\r\n", with which a body in chunks ends: so many are always to come. With fewer,
// Beast 1.81 fails an assertion, in builds that have them.
constexpr std::size_t kLeastChunkBytes = 5;

std::string_view to_view(boost::beast::string_view text) {
    return {text.data(), text.size()};
}

}  // namespace

std::string too_long_body(const HttpLimits& limits) {
    return concat("the body is longer than ", limits.body_bytes, " bytes");
}

struct RequestReader::Impl {
    explicit Impl(const HttpLimits& limits) : scanner(limits) {
        parser.header_limit(std::numeric_limits<std::uint32_t>::max());  // the scanner's task
        parser.body_limit(boost::none);                                  // set after the headers
    }

    Result refuse(int with_status, std::string with_message) {
        status = with_status;
        message = std::move(with_message);
        return Result::refused;
    }

    Result read_head(std::string& received, const HttpLimits& limits);
    Result take_head(const HttpLimits& limits);
    std::optional<std::string> framing_fault() const;
    Result read_body(std::string& received, const HttpLimits& limits);

    HeadScanner scanner;
    Parser parser{};
    HttpRequest request{};
    bool has_started = false;
    bool is_head_done = false;
    int status = 0;
    std::string message{};
};

RequestReader::RequestReader(const HttpLimits& limits)
    : limits_(limits), impl_(std::make_unique<Impl>(limits_)) {}

RequestReader::~RequestReader() = default;

RequestReader::Result RequestReader::read(std::string& received) {
    if (impl_->is_head_done) {
        return impl_->read_body(received, limits_);
    }
    if (!impl_->has_started) {
        // Empty lines before a request line are allowed (RFC 9112, 2.2).
        received.erase(0, std::min(received.find_first_not_of("\r\n"), received.size()));
    }
    return received.empty() ? Result::need_more : impl_->read_head(received, limits_);
}

RequestReader::Result RequestReader::Impl::read_head(std::string& received,
                                                     const HttpLimits& limits) {
    has_started = true;
    switch (scanner.scan(received)) {
        case HeadScanner::Result::incomplete:
            return Result::need_more;
        case HeadScanner::Result::bad_line:
            return refuse(400, "the request line or a header line is malformed");
        case HeadScanner::Result::uri_too_long:
            return refuse(414, concat("the URI is longer than ", limits.uri_bytes, " bytes"));
        case HeadScanner::Result::headers_too_large:
            return refuse(431, concat("the headers are longer than ", limits.header_bytes,
                                      " bytes, or more than ", limits.header_count));
        case HeadScanner::Result::complete:
            break;
    }
    // Only what the scanner took for the head, or Beast might find its end elsewhere.
    error_code error;
    const std::size_t n_taken =
        parser.put(boost::asio::buffer(received.data(), scanner.n_seen()), error);
    if (error || !parser.is_header_done()) {
        return refuse(400, concat("not an HTTP/1.1 request: ", error.message()));
    }
    received.erase(0, n_taken);
    return take_head(limits);
}

// What Beast accepts though requests could be told apart in two ways (request smuggling).
std::optional<std::string> RequestReader::Impl::framing_fault() const {
    const auto& fields = parser.get();
    if (fields.count(http::field::content_length) > 1) {
        return "more than one Content-Length";
    }
    const auto encoding = fields.find(http::field::transfer_encoding);
    if (encoding != fields.end() &&
        (!iequals(encoding->value(), "chunked") || fields.version() < 11)) {
        return "expected no Transfer-Encoding but chunked, of HTTP/1.1";
    }
    const std::size_t n_hosts = fields.count(http::field::host);
    if (n_hosts > 1 || (n_hosts == 0 && fields.version() >= 11)) {
        return "expected one Host header";
    }
    return std::nullopt;
}

RequestReader::Result RequestReader::Impl::take_head(const HttpLimits& limits) {
    if (const auto fault = framing_fault()) {
        return refuse(400, *fault);
    }
    const auto& fields = parser.get();
    auto target = parse_target(to_view(fields.target()));
    if (!target) {
        return refuse(400, "the path is not a path, or has a bad escape");
    }
    request.method = to_view(fields.method_string());
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    for (const auto& field : fields) {
        request.headers.emplace_back(lower_case(to_view(field.name_string())),
                                     to_view(field.value()));
        if (request.headers.back().first == "host" && !target->authority.empty()) {
            request.headers.back().second = target->authority;  // RFC 9112, 3.2.2
        }
    }
    request.id = request_id(request.header("x-request-id"));
    if (request.has_header("expect") && !iequals(request.header("expect"), "100-continue")) {
        return refuse(417, "the only expectation that is met is 100-continue");
    }
    is_head_done = true;
    parser.eager(true);
    if (parser.chunked()) {
        parser.body_limit(limits.body_bytes);
    }
    return Result::head;
}

RequestReader::Result RequestReader::Impl::read_body(std::string& received,
                                                     const HttpLimits& limits) {
    const std::size_t n_least = parser.chunked() ? kLeastChunkBytes : 1;
    if (!parser.is_done() && received.size() >= n_least) {
        error_code error;
        received.erase(0, parser.put(boost::asio::buffer(received), error));
        if (error == http::error::body_limit) {
            return refuse(413, too_long_body(limits));
        }
        if (error && error != http::error::need_more) {
            return refuse(400, concat("the body is malformed: ", error.message()));
        }
    }
    if (parser.is_done()) {
        request.body = std::move(parser.get().body());
        return Result::complete;
    }
    if (received.size() > kMaxUnparsedBytes) {
        return refuse(400, "a chunk's header or the trailer is too long");
    }
    return Result::need_more;
}

bool RequestReader::is_at_start() const {
    return !impl_->has_started;
}

HttpRequest& RequestReader::request() {
    return impl_->request;
}

bool RequestReader::has_body() const {
    return impl_->parser.chunked() || impl_->parser.content_length().value_or(0) > 0;
}

bool RequestReader::is_body_too_long() const {
    return impl_->parser.content_length().value_or(0) > limits_.body_bytes;
}

bool RequestReader::keeps_alive() const {
    return is_chunk_capable() && impl_->parser.keep_alive();
}

bool RequestReader::is_chunk_capable() const {
    return impl_->parser.get().version() >= 11;
}

bool RequestReader::expects_continue() const {
    return has_body() && is_chunk_capable() && impl_->request.has_header("expect");
}

int RequestReader::status() const {
    return impl_->status;
}

const std::string& RequestReader::message() const {
    return impl_->message;
}

void RequestReader::start_next() {
    impl_ = std::make_unique<Impl>(limits_);
}

}  // namespace knap
