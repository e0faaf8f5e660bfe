// Long texts that are part of the program: knap's own documents and sources, taken in when it is
// built (cmake/builtin_texts.cmake).
#pragma once

#include <string_view>

namespace knap {

std::string_view builtin_documents();
std::string_view builtin_sources();

}  // namespace knap
