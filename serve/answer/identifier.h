// Names of answers and tool calls: "chatcmpl-4f1c...".
#pragma once

#include <string>
#include <string_view>

namespace knap {

// `prefix` and 24 random hexadecimal digits.
std::string new_identifier(std::string_view prefix);

}  // namespace knap
