// A limit on the time of work that cannot be interrupted.
#pragma once

#include <chrono>
#include <ctime>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include <pthread.h>

namespace knap {

// How long a thread that runs has computed: on a busy machine it may take much longer than that.
inline std::chrono::nanoseconds cpu_time(std::thread& thread) {
    clockid_t clock{};
    std::timespec time{};
    if (pthread_getcpuclockid(thread.native_handle(), &clock) != 0 ||
        clock_gettime(clock, &time) != 0) {
        return {};
    }
    return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

// Runs `work` on a thread of its own and returns its result, or throws what it throws. Returns
// nullopt if it computes for longer: then it goes on until it ends, so it has to own all that it
// uses.
template <typename Work>
std::optional<std::invoke_result_t<Work>> run_within(std::chrono::milliseconds limit, Work work) {
    constexpr std::chrono::milliseconds kPoll{20};
    std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
    auto result = task.get_future();
    std::thread thread(std::move(task));
    while (result.wait_for(kPoll) == std::future_status::timeout) {
        if (cpu_time(thread) > limit) {
            thread.detach();
            return std::nullopt;
        }
    }
    thread.join();
    return result.get();
}

}  // namespace knap
