#include "serve/engine/idle_time.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.h"

namespace knap {
namespace {

constexpr std::chrono::milliseconds kPoll{100};

}  // namespace

IdleTime::IdleTime(SessionPool& pool, IdleWork work, std::chrono::milliseconds wait)
    : pool_(pool), work_(std::move(work)), wait_(wait) {
    if (work_) {
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
    while (!is_stopping_ && idle < wait_) {
        const std::chrono::milliseconds step = std::min(kPoll, wait_ - idle);
        stopped_.wait_for(lock, step, [this] { return is_stopping_.load(); });
        idle = pool_.is_busy() ? std::chrono::milliseconds{0} : idle + step;
    }
    return !is_stopping_;
}

void IdleTime::run() {
    const auto must_stop = [this] { return is_stopping_.load() || pool_.is_busy(); };
    std::unique_lock lock(mutex_);
    while (wait_for_idleness(lock)) {
        lock.unlock();
        try {
            if (work_(pool_.longest_history(), must_stop)) {
                pool_.renew_strategies();
            }
        } catch (const std::exception& error) {
            log_warning("work in idle time failed, and is not tried again: ", error.what());
            return;
        }
        lock.lock();
    }
}

}  // namespace knap
