// Answers as bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/http/request.h"

namespace knap {

enum class BodyFraming { length, chunks, until_close };

struct ResponseHead {
    BodyFraming framing = BodyFraming::length;
    bool keeps_alive = true;
    std::string_view request_id{};
};

// Status line and headers, with the empty line. Nothing in `response` can add a line: control
// characters in values become spaces, and headers with a bad name are left out.
std::string head_text(const HttpResponse& response, const ResponseHead& head);

// A status that has no body by its meaning: 1xx, 204, 304.
bool is_bodiless(int status);

// A part of a body in chunks. `bytes` is not empty: that would be the last chunk.
std::string chunk_text(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";
inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace knap
