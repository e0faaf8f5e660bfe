// Reads a whole file as text.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace knap {

// Reads standard input when `path` is "-". Errors start with `what` ("prompt FILE: cannot be
// opened: ..."). Throws knap::Error also above 64 MiB, so an endless device cannot fill the memory.
std::string read_text_file(const std::filesystem::path& path, std::string_view what);

}  // namespace knap
