// The text of a message: a string, or parts of type `text`.
#pragma once

#include <string>
#include <string_view>

#include "serve/api/json.h"

namespace knap {

// Parts are joined by line breaks. Throws RequestError for anything else, naming `field`.
std::string content_text(const Json& content, std::string_view field);

}  // namespace knap
