// Holds the request line and the headers to their limits while they arrive, before anything is
// stored: finds where they end, or at which byte they are too long.
#pragma once

#include <cstddef>
#include <string_view>

#include "serve/http/server.h"

namespace knap {

class HeadScanner {
  public:
    enum class Result { incomplete, complete, bad_line, uri_too_long, headers_too_large };

    // `limits` must live as long.
    explicit HeadScanner(const HttpLimits& limits) : limits_(limits) {}

    // Looks at the bytes of `received` that earlier calls have not seen. `received` starts with the
    // request line and is longer in every call. Not called again after a result other than
    // incomplete.
    Result scan(std::string_view received);
    // Once it is complete: the bytes of the head.
    std::size_t n_seen() const { return n_seen_; }

  private:
    Result request_line(char byte);
    Result header_line(char byte);

    const HttpLimits& limits_;
    std::size_t n_seen_ = 0;
    bool is_in_headers_ = false;
    int n_spaces_ = 0;              // of the request line
    std::size_t n_part_bytes_ = 0;  // since the last space of the request line
    std::size_t n_line_bytes_ = 0;  // of the header line, without its line end
    std::size_t n_header_bytes_ = 0;
    int n_headers_ = 0;
};

}  // namespace knap
