// A file of the sources that is part of the program (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace knap {

struct EmbeddedFile {
    std::string_view name;     // as in its folder: "index.html"
    std::string_view content;  // its bytes
};

}  // namespace knap
