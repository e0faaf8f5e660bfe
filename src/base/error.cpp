#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace knap {

void assertion_failed(const char* condition, const char* why, const char* file, int line) {
    std::fprintf(stderr, "knap: bug: %s (%s) at %s:%d\n", why, condition, file, line);
    std::abort();
}

}  // namespace knap
