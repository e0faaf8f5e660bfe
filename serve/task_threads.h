// A few threads for short work that the I/O thread must not do: JSON, templates, tokenizing.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace knap {

using Task = std::function<void()>;

// Tasks should not throw: an exception is logged and dropped.
class TaskThreads {
  public:
    explicit TaskThreads(int n_threads);
    ~TaskThreads() { stop(); }
    TaskThreads(const TaskThreads&) = delete;
    TaskThreads& operator=(const TaskThreads&) = delete;

    void post(Task task);
    // Runs what is queued, then ends the threads. Nothing that is posted later runs.
    void stop();

  private:
    void work();

    std::mutex mutex_;
    std::condition_variable has_work_;
    std::deque<Task> tasks_;
    bool is_stopping_ = false;
    std::vector<std::thread> threads_;
};

// Tasks that run one after the other, in the order in which they were posted, on any of the
// threads.
class SerialTasks {
  public:
    explicit SerialTasks(TaskThreads& threads) : threads_(threads) {}
    SerialTasks(const SerialTasks&) = delete;
    SerialTasks& operator=(const SerialTasks&) = delete;

    void post(Task task);
    // Called once; nothing runs before. `first` runs before what was posted.
    void start(Task first);

  private:
    struct Row {
        std::mutex mutex{};
        std::deque<Task> tasks{};
        bool is_running = true;  // or not started yet
    };
    static void run(const std::shared_ptr<Row>& row);

    TaskThreads& threads_;
    std::shared_ptr<Row> row_ = std::make_shared<Row>();
};

}  // namespace knap
