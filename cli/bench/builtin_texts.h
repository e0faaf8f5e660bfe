// Long texts built into the program: the files of cli/bench/texts, byte for byte
// (cmake/builtin_texts.cmake). Results depend on them, so a changed text gets a new name.
#pragma once

#include <string_view>

namespace knap {

std::string_view builtin_document();
std::string_view builtin_source();

}  // namespace knap
