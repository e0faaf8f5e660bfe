// Names of the types that cache rows may have.
#pragma once

#include <string_view>

#include "knap/types.h"

namespace knap {

// "f32", "f16", "q8_0"
std::string_view to_string(CacheType type);

}  // namespace knap
