// Makes untrusted text safe for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace knap {

// Returns `text` with '?' for every byte that is not printable ASCII, cut at `max_length`. A
// damaged file can have line breaks, escape sequences or megabytes of data where a name belongs.
std::string printable(std::string_view text, std::size_t max_length = 160);

// printable() with at most 64 characters, in single quotes.
std::string in_quotes(std::string_view text);

}  // namespace knap
