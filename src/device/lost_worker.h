// Ends the process when a worker does not answer. ggml aborts when a connection breaks and waits
// forever when it does not; here both end with one line on standard error and exit code 1.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace knap {

// For connecting to a worker: ends the process if the object is not destroyed, because the worker
// has not answered, within some seconds. At most one may exist at a time.
class AnswerDeadline {
  public:
    explicit AnswerDeadline(const std::string& worker);
    ~AnswerDeadline();
    AnswerDeadline(const AnswerDeadline&) = delete;
    AnswerDeadline& operator=(const AnswerDeadline&) = delete;
};

// Counts the calls waiting for a worker as they begin and end, on any thread. The worker counts as
// lost if calls are waiting and none begins or ends.
struct WorkerPulse {
    std::atomic<int> n_waiting{0};
    std::atomic<std::uint64_t> n_changes{0};
};

// Starts to watch this worker, which lends `devices`. The process ends if calls are waiting for it
// and none begins or ends for `patience_s` seconds; 0: never. Time during which the process itself
// was suspended does not count.
void watch_worker(const std::string& worker,
                  std::vector<ggml_backend_dev_t> devices,
                  int patience_s);

// The pulse of the worker that lends a device; null for a device of this machine. Never destroyed.
WorkerPulse* pulse_of(ggml_backend_dev_t device);

// Marks a call that may wait for a worker while the object lives.
class WorkerWait {
  public:
    // Null: there is no worker to wait for, and this does nothing.
    explicit WorkerWait(WorkerPulse* pulse) : pulse_(pulse) { change(1); }
    ~WorkerWait() { change(-1); }
    WorkerWait(const WorkerWait&) = delete;
    WorkerWait& operator=(const WorkerWait&) = delete;

  private:
    void change(int n) {
        if (pulse_ != nullptr) {
            pulse_->n_changes.fetch_add(1);
            pulse_->n_waiting.fetch_add(n);
        }
    }

    WorkerPulse* pulse_;
};

}  // namespace knap
