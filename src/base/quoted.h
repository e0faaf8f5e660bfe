// Text that came from outside, made safe for a message of one line.
#pragma once

#include <string>
#include <string_view>

namespace knap {

// `text` with a '?' for every byte that is not printable ASCII, cut at `max_length`: a damaged file
// may hold line ends, escape sequences and megabytes where a name is expected.
std::string printable(std::string_view text, std::size_t max_length = 160);

// The same between single quotes.
std::string in_quotes(std::string_view text);

}  // namespace knap
