#include "serve/http/head_scanner.h"

namespace knap {

namespace {

constexpr std::size_t kMaxMethodBytes = 32;
constexpr std::size_t kMaxVersionBytes = 16;  // "HTTP/1.1" and the line end

}  // namespace

HeadScanner::Result HeadScanner::scan(std::string_view received) {
    while (n_seen_ < received.size()) {
        const char byte = received[n_seen_++];
        const Result result = is_in_headers_ ? header_line(byte) : request_line(byte);
        if (result != Result::incomplete) {
            return result;
        }
    }
    return Result::incomplete;
}

HeadScanner::Result HeadScanner::request_line(char byte) {
    if (byte == '\n') {
        is_in_headers_ = true;
        return Result::incomplete;
    }
    if (byte == ' ') {
        n_part_bytes_ = 0;
        return ++n_spaces_ > 2 ? Result::bad_line : Result::incomplete;
    }
    ++n_part_bytes_;
    if (n_spaces_ == 1) {
        return n_part_bytes_ > limits_.uri_bytes ? Result::uri_too_long : Result::incomplete;
    }
    const std::size_t max_bytes = n_spaces_ == 0 ? kMaxMethodBytes : kMaxVersionBytes;
    return n_part_bytes_ > max_bytes ? Result::bad_line : Result::incomplete;
}

HeadScanner::Result HeadScanner::header_line(char byte) {
    if (++n_header_bytes_ > limits_.header_bytes) {
        return Result::headers_too_large;
    }
    if (byte == '\n') {
        if (n_line_bytes_ == 0) {
            return Result::complete;
        }
        n_line_bytes_ = 0;
        return ++n_headers_ > limits_.header_count ? Result::headers_too_large : Result::incomplete;
    }
    if (n_line_bytes_ == 0 && (byte == ' ' || byte == '\t')) {
        return Result::bad_line;  // a folded header
    }
    n_line_bytes_ += byte != '\r';
    return Result::incomplete;
}

}  // namespace knap
