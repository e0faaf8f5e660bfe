#include "device/lost_worker.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "ggml.h"

#include <unistd.h>

#include "base/text.h"

namespace knap {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kAnswerTime = std::chrono::seconds(10);

// ggml's callback is process-wide and has no other argument than its message.
struct Connections {
    std::mutex mutex;
    std::condition_variable changed;
    std::string awaited;  // the worker that is being connected to; empty: none
    Clock::time_point deadline;
    std::string answered;  // the others: "host:port, host:port"
};

// Lives for ever: ggml's threads may call at any time.
Connections& connections() {
    static auto* state = new Connections;
    return *state;
}

[[noreturn]] void end_process(const std::string& line) {
    const std::string text = concat("knap: error: ", line, "\n");
    [[maybe_unused]] const auto n_written = write(STDERR_FILENO, text.data(), text.size());
    _exit(1);
}

// Called on the thread that found out; ggml aborts when this returns.
void on_abort(const char* message) {
    if (std::strstr(message, "ggml-rpc") == nullptr) {
        std::fprintf(stderr, "%s\n", message);
        return;
    }
    const Connections& state = connections();
    const std::scoped_lock lock(connections().mutex);
    end_process(state.awaited.empty()
                    ? concat("a worker was lost (", state.answered, ")")
                    : concat("worker ", state.awaited,
                             ": expected a knap worker of this version, found another program"));
}

// Waits for the deadline at hand, and for the next.
void watch() {
    Connections& state = connections();
    std::unique_lock lock(state.mutex);
    while (true) {
        if (state.awaited.empty()) {
            state.changed.wait(lock);
        } else if (state.changed.wait_until(lock, state.deadline) == std::cv_status::timeout &&
                   !state.awaited.empty() && Clock::now() >= state.deadline) {
            end_process(concat("worker ", state.awaited, ": expected an answer within ",
                               kAnswerTime.count(),
                               " s, found none (a worker serves one program at a time)"));
        }
    }
}

void install() {
    static std::once_flag once;
    std::call_once(once, [] {
        std::signal(SIGPIPE, SIG_IGN);
        ggml_set_abort_callback(on_abort);
        std::thread(watch).detach();
    });
}

}  // namespace

AnswerDeadline::AnswerDeadline(const std::string& worker) {
    install();
    Connections& state = connections();
    const std::scoped_lock lock(state.mutex);
    state.awaited = worker;
    state.deadline = Clock::now() + kAnswerTime;
    state.changed.notify_one();
}

void AnswerDeadline::answered() const {
    Connections& state = connections();
    const std::scoped_lock lock(state.mutex);
    if (state.answered.find(state.awaited) == std::string::npos) {
        state.answered += concat(state.answered.empty() ? "" : ", ", state.awaited);
    }
}

AnswerDeadline::~AnswerDeadline() {
    Connections& state = connections();
    const std::scoped_lock lock(state.mutex);
    state.awaited.clear();
    state.changed.notify_one();
}

}  // namespace knap
