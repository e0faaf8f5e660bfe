#include "model/parallel_jobs.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace knap {

namespace {

class JobRun {
  public:
    JobRun(std::size_t n_jobs, const std::function<void(std::size_t)>& job)
        : n_jobs_(n_jobs), job_(job) {}

    // Runs jobs until none is left or one has failed. Every thread calls it.
    void work(const std::function<void(double)>& on_progress) {
        try {
            for (std::size_t i = next_++; i < n_jobs_; i = next_++) {
                job_(i);
                const std::size_t n_done = ++n_done_;
                if (on_progress) {
                    on_progress(double(n_done) / double(n_jobs_));
                }
            }
        } catch (...) {
            stop_with(std::current_exception());
        }
    }

    void rethrow_failure() const {
        if (failure_) {
            std::rethrow_exception(failure_);
        }
    }

  private:
    void stop_with(std::exception_ptr failure) {
        next_ = n_jobs_;
        const std::lock_guard lock(mutex_);
        if (!failure_) {
            failure_ = failure;
        }
    }

    const std::size_t n_jobs_;
    const std::function<void(std::size_t)>& job_;
    std::atomic<std::size_t> next_ = 0;
    std::atomic<std::size_t> n_done_ = 0;
    std::mutex mutex_;
    std::exception_ptr failure_;
};

}  // namespace

void run_parallel(std::size_t n_jobs,
                  const std::function<void(std::size_t)>& job,
                  const std::function<void(double)>& on_progress) {
    JobRun run(n_jobs, job);
    {
        const std::size_t n_threads =
            std::min<std::size_t>(n_jobs, std::max(1u, std::thread::hardware_concurrency()));
        std::vector<std::jthread> helpers;
        for (std::size_t i = 1; i < n_threads; ++i) {
            helpers.emplace_back([&run] { run.work({}); });
        }
        run.work(on_progress);
    }
    run.rethrow_failure();
    if (on_progress) {
        on_progress(1.0);
    }
}

}  // namespace knap
