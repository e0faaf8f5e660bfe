// Uses the time in which no request runs: for work on the model, then for pieces of what sessions
// have to do, one at a time. It begins after some seconds of idleness and is told to stop as soon
// as a request comes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "knap/types.h"

#include "serve/engine/session_pool.h"

namespace knap {

// Learns something about the model on this machine from a text that it has seen, and saves it.
// Returns true if sessions should use what is saved now. It has to return soon after `must_stop`
// says so, which it should ask in every pass; it may read a flag only.
using IdleWork =
    std::function<bool(const std::vector<Token>& text, const std::function<bool()>& must_stop)>;

struct IdleTimeOptions {
    IdleWork work{};                                  // empty: none
    bool uses_sessions = false;                       // Session::use_idle_time
    std::function<void(double seconds)> on_worked{};  // after each piece; may be empty
    std::chrono::milliseconds wait{2000};             // of idleness before work begins
};

class IdleTime {
  public:
    // `pool` must outlive the object. Without anything to do there is no thread.
    IdleTime(SessionPool& pool, IdleTimeOptions options);
    ~IdleTime();
    IdleTime(const IdleTime&) = delete;
    IdleTime& operator=(const IdleTime&) = delete;

  private:
    using MustStop = std::function<bool()>;

    void run();
    void work_on_model(const MustStop& must_stop);
    void work_on_sessions(const MustStop& must_stop);
    void report(double ms) const;
    bool wait_for_idleness(std::unique_lock<std::mutex>& lock);

    SessionPool& pool_;
    IdleTimeOptions options_;
    std::mutex mutex_;
    std::condition_variable stopped_;
    std::atomic<bool> is_stopping_ = false;
    std::thread thread_;
};

}  // namespace knap
