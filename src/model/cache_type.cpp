#include "model/cache_type.h"

namespace knap {

std::string_view to_string(CacheType type) {
    switch (type) {
        case CacheType::f32:
            return "f32";
        case CacheType::f16:
            return "f16";
        case CacheType::q8_0:
            return "q8_0";
    }
    return "";
}

}  // namespace knap
