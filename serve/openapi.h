// The description of the endpoints in OpenAPI's format: openapi.json, which is part of the program.
#pragma once

#include <span>

#include "serve/embedded_file.h"

namespace knap {

std::span<const EmbeddedFile> openapi_files();  // the one file

}  // namespace knap
