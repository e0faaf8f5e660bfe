// Uses the time in which no request runs. Work begins after some seconds of idleness and is told to
// stop as soon as a request comes.
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

class IdleTime {
  public:
    // `pool` must outlive the object. Without work (an empty function) nothing happens.
    IdleTime(SessionPool& pool, IdleWork work, std::chrono::milliseconds wait = kWait);
    ~IdleTime();
    IdleTime(const IdleTime&) = delete;
    IdleTime& operator=(const IdleTime&) = delete;

  private:
    static constexpr std::chrono::milliseconds kWait{2000};  // of idleness before work begins

    void run();
    bool wait_for_idleness(std::unique_lock<std::mutex>& lock);

    SessionPool& pool_;
    IdleWork work_;
    std::chrono::milliseconds wait_;
    std::mutex mutex_;
    std::condition_variable stopped_;
    std::atomic<bool> is_stopping_ = false;
    std::thread thread_;
};

}  // namespace knap
