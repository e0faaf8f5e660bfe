// The library's errors name fields of its options in backquotes; on the command line they are
// flags.
#pragma once

#include <string>
#include <string_view>

namespace knap {

// `text` with every "`.field`" that a flag sets replaced by that flag.
std::string with_flag_names(std::string_view text);

}  // namespace knap
