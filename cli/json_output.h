// One JSON object on standard output, on one line.
#pragma once

#include <nlohmann/json.hpp>

#include "text_output.h"

namespace knap {

// A path or a name from a file may not be UTF-8; such bytes become U+FFFD, so that the output
// always parses.
inline void write_json(TextOutput& output, const nlohmann::ordered_json& value) {
    output.write(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace knap
