#include "cli/interrupt.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/exit_code.h"

namespace knap {
namespace {

// A signal handler can only communicate through process-wide, lock-free variables and descriptors.
std::atomic<bool> is_in_scope{false};
std::atomic<int> noted_signal{0};
std::atomic<int> wake_descriptor{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// On a terminal, something else may be in the line already.
[[noreturn]] void end_at_once() {
    const std::string_view text =
        isatty(STDERR_FILENO) != 0 ? "\nknap: interrupted\n" : "knap: interrupted\n";
    [[maybe_unused]] const auto n_written = write(STDERR_FILENO, text.data(), text.size());
    _exit(kExitInterrupted);
}

void on_signal(int signal) {
    if (!is_in_scope || noted_signal.exchange(signal) != 0) {
        end_at_once();
    }
    const int errno_before = errno;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n_written = write(wake_descriptor, &one, sizeof one);
    errno = errno_before;
}

}  // namespace

void install_signal_handlers() {
    wake_descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
}

InterruptScope::InterruptScope() {
    std::uint64_t count = 0;  // signals of an earlier scope
    [[maybe_unused]] const auto n_read = read(wake_descriptor, &count, sizeof count);
    noted_signal = 0;
    is_in_scope = true;
}

InterruptScope::~InterruptScope() {
    is_in_scope = false;
}

int InterruptScope::signal() const {
    return noted_signal.load(std::memory_order_relaxed);
}

int InterruptScope::descriptor() const {
    return wake_descriptor;
}

}  // namespace knap
