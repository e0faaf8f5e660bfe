#include "serve/task_threads.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace knap {
namespace {

void run_task(const Task& task) {
    try {
        task();
    } catch (const std::exception& error) {
        log_warning("a task of the server failed: ", error.what());
    }
}

}  // namespace

TaskThreads::TaskThreads(int n_threads) {
    try {
        for (int i = 0; i < n_threads; ++i) {
            threads_.emplace_back([this] { work(); });
        }
    } catch (...) {
        stop();
        throw;
    }
}

void TaskThreads::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    has_work_.notify_all();
    for (std::thread& thread : std::exchange(threads_, {})) {
        thread.join();
    }
}

void TaskThreads::post(Task task) {
    {
        const std::lock_guard lock(mutex_);
        tasks_.push_back(std::move(task));
    }
    has_work_.notify_one();
}

void TaskThreads::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        has_work_.wait(lock, [this] { return is_stopping_ || !tasks_.empty(); });
        if (tasks_.empty()) {
            return;
        }
        const Task task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        run_task(task);
        lock.lock();
    }
}

void SerialTasks::start(Task first) {
    {
        const std::lock_guard lock(row_->mutex);
        row_->tasks.push_front(std::move(first));
    }
    threads_.post([row = row_] { run(row); });
}

void SerialTasks::post(Task task) {
    const std::lock_guard lock(row_->mutex);
    row_->tasks.push_back(std::move(task));
    if (!std::exchange(row_->is_running, true)) {
        threads_.post([row = row_] { run(row); });
    }
}

// Runs until the row is empty, so that tasks that come quickly share a turn.
void SerialTasks::run(const std::shared_ptr<Row>& row) {
    for (;;) {
        Task task;
        {
            const std::lock_guard lock(row->mutex);
            if (row->tasks.empty()) {
                row->is_running = false;
                return;
            }
            task = std::move(row->tasks.front());
            row->tasks.pop_front();
        }
        run_task(task);
    }
}

}  // namespace knap
