// The types that cache rows may have, and their names.
#pragma once

#include <string_view>

#include "knap/types.h"

namespace knap {

struct CacheTypes {
    CacheType keys = CacheType::f16;
    CacheType values = CacheType::f16;
};

// "f32", "f16", "q8_0"
std::string_view to_string(CacheType type);

}  // namespace knap
