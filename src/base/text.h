// Joining values into a message. (std::format is not in every compiler that we build with.)
#pragma once

#include <sstream>
#include <string>

namespace knap {

template <typename... Parts>
std::string concat(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

}  // namespace knap
