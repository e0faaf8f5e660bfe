// One JSON object as text, on one line.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "cli/generate/text_output.h"

namespace knap {

// A path or a name from a file may not be UTF-8; such bytes become U+FFFD, so that the text always
// parses.
inline std::string to_text(const nlohmann::ordered_json& value) {
    return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

inline void write_json(TextOutput& output, const nlohmann::ordered_json& value) {
    output.write(to_text(value));
}

}  // namespace knap
