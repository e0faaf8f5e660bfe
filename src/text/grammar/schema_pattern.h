// Regular expressions of JSON schemas, as llama.cpp's converter takes them.
#pragma once

#include <optional>
#include <string>

namespace knap {

// An expression that the converter makes a rule of, which matches no more than `pattern` does, and
// only characters that JSON writes as they are (no quote, backslash or control character; `\s` is a
// space). nullopt when there is none: not ^...$, assertions, back references, ...
std::optional<std::string> convertible_pattern(const std::string& pattern);

}  // namespace knap
