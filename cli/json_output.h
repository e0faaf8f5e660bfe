// Writes a JSON object as one line of text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "cli/generate/text_output.h"

namespace knap {

// Paths, and names from files, may not be valid UTF-8. Bad bytes become U+FFFD, so that the text
// always parses.
inline std::string to_text(const nlohmann::ordered_json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

inline void write_json(TextOutput& output, const nlohmann::ordered_json& value) {
    output.write(to_text(value));
}

}  // namespace knap
