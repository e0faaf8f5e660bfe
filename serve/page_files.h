// The files of the page (serve/page), as the build embeds them.
#pragma once

#include <span>

#include "serve/embedded_file.h"

namespace knap {

std::span<const EmbeddedFile> page_files();

}  // namespace knap
