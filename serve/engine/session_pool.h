// Runs jobs on a fixed number of sessions, each with a thread of its own; the engine computes their
// passes together. Jobs beyond that wait in a queue, first come, first served.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "knap/knap.h"

#include "serve/engine/job.h"

namespace knap {

// A submitted job, for cancelling it.
class JobTicket {
  public:
    JobTicket(Job job_to_run, std::uint64_t number_of_job);

    const std::uint64_t number;

  private:
    friend class SessionPool;
    using Clock = std::chrono::steady_clock;

    Job job_;
    const Clock::time_point submitted_ = Clock::now();
    std::atomic<bool> is_cancelled_ = false;
};

// What a session does at the moment.
struct SessionState {
    int id = 0;
    bool is_processing = false;
    std::uint64_t job = 0;  // the number of the job that it runs or ran last; 0: none
    int n_prompt = 0;       // of that job
    int n_prompt_done = 0;
    int n_generated = 0;
    std::string strategy{};
};

class SessionPool {
  public:
    // `engine` must outlive the pool. At most `n_queue` jobs wait.
    SessionPool(Engine& engine, int n_sessions, int n_queue);
    ~SessionPool() { stop(); }
    SessionPool(const SessionPool&) = delete;
    SessionPool& operator=(const SessionPool&) = delete;

    // Cancels what runs and what waits, and waits for its end. From then on nothing is queued.
    void stop();

    // Throws knap::Error if a session would refuse the job. Any thread.
    void check(const Job& job);

    // Queues all of the jobs or, when the queue has no room for them, none: then the result is
    // empty.
    std::vector<std::shared_ptr<JobTicket>> submit(std::vector<Job> jobs);
    // Nobody wants the answer any more. One that waits ends at once, in this call.
    void cancel(const std::shared_ptr<JobTicket>& ticket);
    // Ends waiting jobs whose deadline has passed. Running ones notice by themselves.
    void expire_waiting();

    std::vector<SessionState> sessions() const;
    int n_running() const { return n_running_.load(); }
    int n_waiting() const { return n_waiting_.load(); }
    bool is_busy() const { return n_running() + n_waiting() > 0; }  // reads flags only
    // The longest conversation that an idle session has.
    std::vector<Token> longest_history() const;
    // Does a piece of work for a session without a job: see Session. Returns false if none has
    // anything to do, or if `must_stop`, which may read a flag only. One caller at a time. A job
    // for the session waits until the piece ends.
    bool use_idle_time(const std::function<bool()>& must_stop);
    // Sessions take up the costs and plans that are saved now, before their next job.
    void renew_strategies();
    // How long a job that is submitted now would wait, from the time that recent ones took.
    std::chrono::milliseconds expected_wait() const;

  private:
    struct Worker {
        explicit Worker(Engine& engine) : session(engine) {}
        Session session;
        std::vector<Token> history{};           // of the session, while it is idle
        std::shared_ptr<JobTicket> assigned{};  // null: idle
        SessionState state{};
        bool needs_renewal = false;  // of its strategies
        std::mutex in_use{};         // held while the session works
        std::thread thread{};
    };

    void serve(Worker& worker);
    JobEnd run(Worker& worker, JobTicket& ticket);
    bool is_free(const Worker& worker) const;
    Result generate(Worker& worker, JobTicket& ticket, AnswerPart& part);
    Observer observe(Worker& worker, JobTicket& ticket, AnswerPart& part);
    // Gives waiting jobs to idle sessions. With `mutex_` held.
    void assign();
    Worker* best_idle_worker(const std::vector<Token>& prompt);
    void end_waiting(const std::shared_ptr<JobTicket>& ticket, JobOutcome outcome);
    static void end_job(JobTicket& ticket, JobEnd end);
    static void end_unstarted(JobTicket& ticket, JobOutcome outcome);
    void note_duration(std::chrono::duration<double> duration);

    const std::size_t n_queue_;
    mutable std::mutex mutex_;
    std::condition_variable has_work_;
    std::deque<std::shared_ptr<JobTicket>> queue_;
    std::vector<std::unique_ptr<Worker>> workers_;
    std::mutex check_mutex_;
    Session check_session_;  // only for check()
    std::uint64_t n_submitted_ = 0;
    double mean_seconds_ = 1;  // of recent jobs
    bool is_stopping_ = false;
    std::atomic<int> n_running_ = 0;
    std::atomic<int> n_waiting_ = 0;
};

}  // namespace knap
