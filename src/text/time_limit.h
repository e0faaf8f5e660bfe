// A limit on the time of work that cannot be interrupted.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace knap {

// Runs `work` on a thread of its own and returns its result, or throws what it throws. Returns
// nullopt if it takes longer: then it goes on until it ends, so it has to own all that it uses.
template <typename Work>
std::optional<std::invoke_result_t<Work>> run_within(std::chrono::milliseconds limit, Work work) {
    std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
    auto result = task.get_future();
    std::thread thread(std::move(task));
    if (result.wait_for(limit) == std::future_status::timeout) {
        thread.detach();
        return std::nullopt;
    }
    thread.join();
    return result.get();
}

}  // namespace knap
