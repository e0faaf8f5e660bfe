// Where the passes of sessions meet. Each session has a thread of its own, which hands its runs of
// rows to the scheduler and waits; runs that wait at the same time and may share a pass
// (can_share_pass) are computed in one. The scheduler has no thread: a session that finds no pass
// under way leads, which is to compute the next passes for all who wait. When its own run is
// computed, it wakes somebody who still waits. There is one pass at a time.
//
// Sessions sample their tokens between passes. So that they stay together in one pass, a pass waits
// a moment for the sessions of the latest passes that have not asked for their next one yet.
//
// A search is computed at once or not at all: it never makes another session wait for more than the
// pass under way, and stops when somebody comes. The files of scheduling/ say which runs go into a
// pass, in which order, and how many rows of prompts.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "forward/batch.h"
#include "runtime/scheduling/client_list.h"
#include "runtime/scheduling/pass_queue.h"
#include "runtime/scheduling/pass_times.h"

namespace knap {

struct SchedulerOptions {
    // What rows of prompts may add to a pass while others decode.
    double target_ms = 50;
    // How long a pass waits for other sessions: a share of the mean time of a pass, within bounds.
    double wait_share = 0.25;
    double min_wait_ms = 0.2;
    double max_wait_ms = 5;
    // Searches go on while the other sessions have asked for nothing for this long.
    double quiet_ms = 20;
};

class Scheduler final : public PassRunner {
  public:
    // `runner` must outlive the scheduler; its limits do not change.
    explicit Scheduler(BatchRunner& runner, const SchedulerOptions& options = {});

    // From any thread. If the pass fails, each of its runs throws what the runner threw. The run
    // comes back as it was, also if it is a prompt that was computed in part. While it waits,
    // `is_cancelled` is called from any thread that waits; it must not call the scheduler.
    void run(RowRun& run) override;
    // Runs `work` on the calling thread. It must not ask for a pass.
    void run_alone(const std::function<void()>& work) override;

    // A session that is being served, on the thread that makes the object. Passes wait a moment for
    // its next run, and prompts of others are cut short while it decodes.
    class Client {
      public:
        explicit Client(Scheduler& scheduler);
        ~Client();
        Client(const Client&) = delete;
        Client& operator=(const Client&) = delete;

      private:
        Scheduler& scheduler_;
        ClientState state_;  // guarded by the scheduler
    };

    Load load() const override;

  private:
    using Clock = std::chrono::steady_clock;
    using Lock = std::unique_lock<std::mutex>;

    void ask(Ticket& ticket, std::optional<PassKind> kind);
    static void answer(Ticket& ticket, SteadyTime now);
    void wait_for_turn(Lock& lock, Ticket& own);
    bool may_search() const;
    bool may_lead(const Ticket& own) const;
    void wait(Lock& lock, Ticket& own);
    void wake_next();

    void lead(Lock& lock, const Ticket& own);
    void gather(Lock& lock);
    bool is_gathered();
    void tell_gatherer();
    int max_prompt_rows() const;
    void compute(Lock& lock, const Ticket& own);
    void deliver(const Ticket& own,
                 SteadyTime start,
                 SteadyTime end,
                 const std::exception_ptr& error);

    BatchRunner& runner_;
    const SchedulerOptions options_;
    const PassLimits limits_;

    mutable std::mutex mutex_;  // guards everything below, but for a pass that is under way
    ClientList clients_;
    PassQueue queue_;
    PassTimes times_;
    bool is_busy_ = false;       // somebody leads a pass, or works alone
    bool is_gathering_ = false;  // and waits for others to join it
    std::condition_variable gathered_;
    std::vector<Ticket*> batch_;  // the pass under way
    std::vector<RowRun*> runs_;   // of these
};

}  // namespace knap
