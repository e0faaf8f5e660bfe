// Handles Ctrl-C and SIGTERM. Outside a scope, either one ends the process immediately with exit
// code 130 and a line on standard error. Inside a scope, the first is only recorded, so that the
// program can stop and save its results; the second ends the process.
#pragma once

namespace knap {

// Call once, before anything else. Also ignores SIGPIPE and SIGXFSZ, so that write() to a closed
// pipe, or beyond the largest size of a file (`ulimit -f`), fails instead of raising a signal.
void install_signal_handlers();

// At most one exists at a time.
class InterruptScope {
  public:
    InterruptScope();
    ~InterruptScope();
    InterruptScope(const InterruptScope&) = delete;
    InterruptScope& operator=(const InterruptScope&) = delete;

    // The signal received since the scope began: SIGINT, SIGTERM, or 0 for none. Safe to call from
    // any thread.
    int signal() const;

    // Becomes readable when the signal arrives, for use with poll(). EINTR is not enough: the
    // signal may arrive just before a system call, or in another thread.
    int descriptor() const;
};

}  // namespace knap
