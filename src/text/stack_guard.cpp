#include "text/stack_guard.h"

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <pthread.h>
#include <unistd.h>

#include "base/error.h"

namespace knap {
namespace {

constexpr std::size_t kOtherStack = std::size_t{64} << 10;
// How far beyond the end of a stack a large frame may reach.
constexpr std::uintptr_t kLargestFrame = std::uintptr_t{256} << 10;

// Where the stack of a guarded thread ends.
struct End {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    const char* line = nullptr;  // null: the thread is not guarded
};

thread_local End end_of_stack;
struct sigaction former;

void write_all(const char* text) {
    for (std::size_t n = std::strlen(text); n > 0;) {
        const ssize_t n_written = ::write(STDERR_FILENO, text, n);
        if (n_written <= 0) {
            return;
        }
        text += n_written;
        n -= static_cast<std::size_t>(n_written);
    }
}

// Returning runs the instruction again, which then does what it did without this handler.
void handle(int signal, siginfo_t* info, void* /*context*/) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    const End& end = end_of_stack;
    if (end.line == nullptr || address < end.begin || address >= end.end) {
        ::sigaction(signal, &former, nullptr);
        return;
    }
    write_all("knap: error: ");
    write_all(end.line);
    write_all("\n");
    ::_exit(1);
}

void install() {
    struct sigaction action {};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    KNAP_ASSERT(::sigaction(SIGSEGV, &action, &former) == 0, "the action is a valid one");
}

End find_end(const char* line) {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return {};
    }
    void* lowest = nullptr;
    std::size_t n_bytes = 0;
    std::size_t n_guard = 0;
    pthread_attr_getstack(&attributes, &lowest, &n_bytes);
    pthread_attr_getguardsize(&attributes, &n_guard);
    pthread_attr_destroy(&attributes);
    const auto at = reinterpret_cast<std::uintptr_t>(lowest);
    return {.begin = at - n_guard - kLargestFrame, .end = at + n_guard, .line = line};
}

}  // namespace

StackGuard::StackGuard(const char* line) : other_stack_(std::make_unique<char[]>(kOtherStack)) {
    static const bool is_installed = (install(), true);
    static_cast<void>(is_installed);
    const stack_t other{.ss_sp = other_stack_.get(), .ss_flags = 0, .ss_size = kOtherStack};
    if (::sigaltstack(&other, nullptr) == 0) {
        end_of_stack = find_end(line);
    }
}

StackGuard::~StackGuard() {
    end_of_stack = {};
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    ::sigaltstack(&none, nullptr);
}

}  // namespace knap
