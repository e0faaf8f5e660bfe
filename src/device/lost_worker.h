// What becomes of the process when a worker does not answer. ggml aborts it when a connection
// breaks, and waits for ever where none does; here both end with one line on standard error and
// exit code 1.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "ggml-backend.h"

namespace knap {

// Of a worker that is being connected to: ends the process unless it has answered, and so the
// object is gone, within some seconds. At most one at a time.
class AnswerDeadline {
  public:
    explicit AnswerDeadline(const std::string& worker);
    ~AnswerDeadline();
    AnswerDeadline(const AnswerDeadline&) = delete;
    AnswerDeadline& operator=(const AnswerDeadline&) = delete;
};

// Calls that wait for a worker, counted as they begin and end, on any thread. It is lost where some
// have begun and nothing changes any more.
struct WorkerPulse {
    std::atomic<int> n_waiting{0};
    std::atomic<std::uint64_t> n_changes{0};
};

// From now on this worker, which lends `devices`, may be lost. Where it is waited for, and no call
// begins or ends for `patience_s` seconds, the process ends; 0: it never does. Time in which the
// process itself was stopped does not count.
void watch_worker(const std::string& worker,
                  std::vector<ggml_backend_dev_t> devices,
                  int patience_s);

// Of the worker that lends a device; null: the device is this machine's own. Lives for ever.
WorkerPulse* pulse_of(ggml_backend_dev_t device);

// A call that may wait for a worker, for as long as the object lives.
class WorkerWait {
  public:
    // Null: there is none to wait for, and nothing to do.
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
