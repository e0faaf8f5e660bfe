// The two ways to give up: fail() for bad input, KNAP_ASSERT for a bug in knap.
#pragma once

#include "knap/types.h"

#include "base/text.h"

namespace knap {

// Throws knap::Error with the parts joined: fail("-c: expected at least 8, found ", n).
template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
    throw Error(concat(parts...));
}

[[noreturn]] void assertion_failed(const char* condition,
                                   const char* why,
                                   const char* file,
                                   int line);

}  // namespace knap

// A failed assertion is a bug in knap: no user input may trigger one. Stays on in release builds.
#define KNAP_ASSERT(condition, why) \
    ((condition) ? void(0) : ::knap::assertion_failed(#condition, why, __FILE__, __LINE__))
