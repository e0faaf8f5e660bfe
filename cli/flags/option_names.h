// Translates the library's error messages, which name option fields in backquotes, to flag names.
#pragma once

#include <string>
#include <string_view>

namespace knap {

// Replaces every "`.field`" in `text` that a flag sets by that flag.
std::string with_flag_names(std::string_view text);

}  // namespace knap
