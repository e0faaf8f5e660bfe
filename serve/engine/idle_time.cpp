#include "serve/engine/idle_time.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace knap {
namespace {

constexpr std::chrono::milliseconds kPoll{100};

}  // namespace

IdleTime::IdleTime(SessionPool& pool, IdleTimeOptions options)
    : pool_(pool), options_(std::move(options)) {
    if (options_.work || options_.uses_sessions) {
        thread_ = std::thread([this] { run(); });
    }
}

IdleTime::~IdleTime() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    stopped_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

// Waits until nothing has run for a while. Returns false when the object ends.
bool IdleTime::wait_for_idleness(std::unique_lock<std::mutex>& lock) {
    std::chrono::milliseconds idle{0};
    while (!is_stopping_ && idle < options_.wait) {
        const std::chrono::milliseconds step = std::min(kPoll, options_.wait - idle);
        stopped_.wait_for(lock, step, [this] { return is_stopping_.load(); });
        idle = pool_.is_busy() ? std::chrono::milliseconds{0} : idle + step;
    }
    return !is_stopping_;
}

void IdleTime::report(double ms) const {
    if (options_.on_worked) {
        options_.on_worked(ms / 1000);
    }
}

void IdleTime::work_on_model(const MustStop& must_stop) try {
    const Stopwatch watch;
    if (options_.work(pool_.longest_history(), must_stop)) {
        pool_.renew_strategies();
    }
    report(watch.elapsed_ms());
} catch (const std::exception& error) {
    log_warning("measuring in idle time failed, and is not tried again: ", error.what());
    options_.work = {};
}

// Until nothing is left to do.
void IdleTime::work_on_sessions(const MustStop& must_stop) try {
    Stopwatch watch;
    while (pool_.use_idle_time(must_stop)) {
        report(watch.elapsed_ms());
        watch = Stopwatch();
    }
} catch (const std::exception& error) {
    log_warning("searching in idle time failed, and is not tried again: ", error.what());
    options_.uses_sessions = false;
}

void IdleTime::run() {
    const auto must_stop = [this] { return is_stopping_.load() || pool_.is_busy(); };
    std::unique_lock lock(mutex_);
    while (wait_for_idleness(lock)) {
        lock.unlock();
        if (options_.work) {
            work_on_model(must_stop);
        }
        if (options_.uses_sessions) {
            work_on_sessions(must_stop);
        }
        lock.lock();
    }
}

}  // namespace knap
