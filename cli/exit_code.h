// Exit codes, and the error for wrong usage.
#pragma once

#include "knap/types.h"

#include "base/text.h"

namespace knap {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

// Wrong usage: exit code 2, and a message that points to --help.
class UsageError : public Error {
  public:
    using Error::Error;
};

// Ctrl-C or SIGTERM: exit code 130. The message tells what is kept.
class InterruptedError : public Error {
  public:
    using Error::Error;
};

template <typename... Parts>
[[noreturn]] void fail_usage(const Parts&... parts) {
    throw UsageError(concat(parts...));
}

}  // namespace knap
