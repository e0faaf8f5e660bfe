// Tasks that other threads hand to the I/O thread, run in the order in which they came. Outlives
// the loop that it wakes: after close(), tasks are refused.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace knap {

class TaskQueue {
  public:
    using Task = std::function<void()>;

    // `wake` is called, by the thread that posts, when the queue was empty.
    explicit TaskQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

    // False: the queue is closed, and the task was not taken.
    [[nodiscard]] bool post(Task task);

    // Runs the tasks that are there. An exception of a task is logged, and ends that task alone.
    void run_all();

    // From now on tasks are refused, and `wake` is not called. Those that were taken are still
    // there.
    void close();

  private:
    std::mutex mutex_{};
    std::function<void()> wake_;
    std::vector<Task> tasks_{};
    bool is_closed_ = false;
};

}  // namespace knap
