// Ctrl-C and SIGTERM. Outside a scope either one ends the process at once with exit code 130.
// Inside a scope the first is only noted, so that the program can stop what it does and keep what
// it has; the second ends the process.
#pragma once

namespace knap {

// To be called once, before anything else. A closed pipe becomes an error of write() instead of a
// signal.
void install_signal_handlers();

// At most one at a time.
class InterruptScope {
  public:
    InterruptScope();
    ~InterruptScope();
    InterruptScope(const InterruptScope&) = delete;
    InterruptScope& operator=(const InterruptScope&) = delete;

    // The signal that came since the scope began: SIGINT, SIGTERM, or 0 for none. May be read from
    // any thread.
    int signal() const;

    // Becomes readable with the signal: for poll(). A system call that waits cannot rely on being
    // interrupted, because the signal may come just before it, or to another thread.
    int descriptor() const;
};

}  // namespace knap
