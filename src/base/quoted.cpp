#include "base/quoted.h"

#include <algorithm>

#include "base/text.h"

namespace knap {

std::string printable(std::string_view text, std::size_t max_length) {
    std::string line(text.substr(0, max_length));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    return text.size() > max_length ? line + "..." : line;
}

std::string in_quotes(std::string_view text) {
    return concat('\'', printable(text, 64), '\'');
}

}  // namespace knap
