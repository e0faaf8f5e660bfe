// A whole file as text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace knap {

// "-" is standard input. `what` names the text in an error ("prompt FILE: cannot be opened: ...").
// Throws also when there is more than any text could be: a device that never ends is noticed before
// it fills the memory.
std::string read_text_file(const std::filesystem::path& path, std::string_view what);

}  // namespace knap
