// Ends the process with one line on standard error and exit code 1, where it would crash, when a
// thread runs out of stack. For code of others that descends as deep as a text from outside wants:
// there is no way to go on, because the thread may hold locks, such as that of its memory.
#pragma once

#include <memory>

namespace knap {

// Guards the thread that makes it, for as long as it lives. At most one for a thread.
class StackGuard {
  public:
    // `line` is what to say, without "knap: error: ". It must outlive the object.
    explicit StackGuard(const char* line);
    ~StackGuard();
    StackGuard(const StackGuard&) = delete;
    StackGuard& operator=(const StackGuard&) = delete;

  private:
    std::unique_ptr<char[]> other_stack_;  // that the handler of the signal runs on
};

}  // namespace knap
