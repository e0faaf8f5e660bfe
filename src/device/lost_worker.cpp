#include "device/lost_worker.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "ggml.h"

#include <unistd.h>

#include "base/text.h"

namespace knap {
namespace {

constexpr int kAnswerSeconds = 10;

// A worker that is connected.
struct WatchedWorker {
    std::string address;
    std::vector<ggml_backend_dev_t> devices;
    int patience_s = 0;  // 0: without end
    WorkerPulse pulse{};
    // At the last look, one of which is taken each second:
    std::uint64_t n_changes = 0;
    int n_silent_s = 0;
};

// ggml's callback is process-wide and has no other argument than its message.
struct Workers {
    std::mutex mutex;
    std::string awaited;  // the worker that is being connected to; empty: none
    int n_awaited_s = 0;
    std::deque<WatchedWorker> connected;  // ever: they do not move
};

// Lives for ever: ggml's threads may call at any time.
Workers& workers() {
    static auto* state = new Workers;
    return *state;
}

[[noreturn]] void end_process(const std::string& line) {
    const std::string text = concat("knap: error: ", line, "\n");
    [[maybe_unused]] const auto n_written = write(STDERR_FILENO, text.data(), text.size());
    _exit(1);
}

[[noreturn]] void end_for_silence(const std::string& worker, int seconds, const char* why) {
    end_process(
        concat("worker ", worker, ": expected an answer within ", seconds, " s, found none", why));
}

std::string addresses_of(const std::deque<WatchedWorker>& connected) {
    return join(connected, ", ", &WatchedWorker::address);
}

// Called on the thread that found out; ggml aborts when this returns.
void on_abort(const char* message) {
    if (std::strstr(message, "ggml-rpc") == nullptr) {
        std::fprintf(stderr, "%s\n", message);
        return;
    }
    const Workers& state = workers();
    const std::scoped_lock lock(workers().mutex);
    end_process(state.awaited.empty()
                    ? concat("a worker was lost (", addresses_of(state.connected), ")")
                    : concat("worker ", state.awaited,
                             ": expected a knap worker of this version, found another program"));
}

void look_at(WatchedWorker& worker) {
    // In this order: a call that ends in between has changed something.
    const bool is_awaited = worker.pulse.n_waiting.load() > 0;
    const std::uint64_t n_changes = worker.pulse.n_changes.load();
    const bool is_silent = is_awaited && n_changes == worker.n_changes;
    worker.n_silent_s = is_silent ? worker.n_silent_s + 1 : 0;
    worker.n_changes = n_changes;
    if (worker.patience_s > 0 && worker.n_silent_s >= worker.patience_s) {
        end_for_silence(worker.address, worker.patience_s, "");
    }
}

// Counts looks instead of reading clocks: while this process is stopped, nobody is late.
void watch() {
    Workers& state = workers();
    while (true) {
        std::this_thread::sleep_for(std::chrono::seconds(1));
        const std::scoped_lock lock(state.mutex);
        if (!state.awaited.empty() && ++state.n_awaited_s > kAnswerSeconds) {
            end_for_silence(state.awaited, kAnswerSeconds,
                            " (a worker serves one program at a time)");
        }
        std::ranges::for_each(state.connected, look_at);
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
    const std::scoped_lock lock(workers().mutex);
    workers().awaited = worker;
    workers().n_awaited_s = 0;
}

AnswerDeadline::~AnswerDeadline() {
    const std::scoped_lock lock(workers().mutex);
    workers().awaited.clear();
}

void watch_worker(const std::string& worker,
                  std::vector<ggml_backend_dev_t> devices,
                  int patience_s) {
    install();
    std::deque<WatchedWorker>& connected = workers().connected;
    const std::scoped_lock lock(workers().mutex);
    const auto known = std::ranges::find(connected, worker, &WatchedWorker::address);
    WatchedWorker& watched = known != connected.end() ? *known : connected.emplace_back();
    watched.address = worker;
    watched.devices = std::move(devices);
    watched.patience_s = patience_s;
}

WorkerPulse* pulse_of(ggml_backend_dev_t device) {
    const std::scoped_lock lock(workers().mutex);
    for (WatchedWorker& worker : workers().connected) {
        if (std::ranges::find(worker.devices, device) != worker.devices.end()) {
            return &worker.pulse;
        }
    }
    return nullptr;
}

}  // namespace knap
