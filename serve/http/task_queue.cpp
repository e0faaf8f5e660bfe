#include "serve/http/task_queue.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace knap {

bool TaskQueue::post(Task task) {
    const std::lock_guard lock(mutex_);
    if (is_closed_) {
        return false;
    }
    tasks_.push_back(std::move(task));
    if (tasks_.size() == 1) {
        wake_();
    }
    return true;
}

void TaskQueue::run_all() {
    std::vector<Task> tasks;
    {
        const std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
    }
    for (Task& task : tasks) {
        try {
            task();
        } catch (const std::exception& error) {
            log_warning("server: a task failed: ", error.what());
        }
        task = nullptr;  // what it holds is released before the next one runs
    }
}

void TaskQueue::close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
}

}  // namespace knap
