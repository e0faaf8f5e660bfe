// Threads that compute the phases of a pass together.
//
// A job runs on every thread of the team and goes through the same phases on each. A phase is a
// number of items that may be computed in any order. Each thread has a share of them; one that is
// done with its own and has waited for a moment takes what others have not begun. So a thread that
// has lost its core delays the others only by the item it holds, and one that comes late finds the
// phases done and skips them.
//
// Waiting is a few microseconds of spinning, then sleep: on a busy machine a spinning thread would
// keep the core from the thread that it waits for.
//
// In a large team the shares of a few threads have a counter of their own, and only who completes
// it writes to the one that all wait for. Otherwise the threads would finish a phase one after the
// other, each taking that cache line away from all who look at it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace knap {

class ThreadTeam;

// Something useful for a thread that waits for the others, in pieces of some ten nanoseconds.
class WaitingWork {
  public:
    virtual ~WaitingWork() = default;
    // A piece. False once nothing is left.
    virtual bool step() = 0;
};

// One thread of the team, during a job.
class TeamMember {
  public:
    TeamMember(ThreadTeam& team, int index) : team_(team), index_(index) {}

    int index() const { return index_; }
    int n_threads() const;

    // A phase: calls work(item) for items of [0, n_items) until all have been computed, here or on
    // other threads. What was written before a phase ended is visible after it. `idle` is stepped
    // while this thread waits; null: nothing is.
    template <typename Work>
    void share(int n_items, Work&& work, WaitingWork* idle = nullptr);
    // The items of such a phase that are this thread's, unless others help.
    int share_begin(int n_items) const;
    int share_end(int n_items) const;

    // Ends the job early: no thread begins another phase once it has noticed.
    void stop();
    bool is_stopped() const;

  private:
    // The next item of `owner`'s share [begin, end), or `end` if none is left.
    std::uint32_t take(int owner, std::uint32_t begin, std::uint32_t end);
    // Computes what is left of `owner`'s share of the phase whose first item is `first`.
    template <typename Work>
    void work_off(int owner, std::uint32_t first, int n_items, Work& work);

    ThreadTeam& team_;
    int index_;
    std::uint32_t next_ = 0;  // items of all phases before the next one
};

class ThreadTeam {
  public:
    // `n_threads` at least 1, the calling thread of run() included.
    explicit ThreadTeam(int n_threads);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    int n_threads() const { return n_threads_; }

    // Runs job(TeamMember&) on the calling thread and, as they wake, on the others; returns when
    // none of them is in it any more. Calls from several threads take turns. A job must not throw.
    template <typename Job>
    void run(Job&& job) {
        run_job([](void* given, TeamMember& member) { (*static_cast<Job*>(given))(member); }, &job);
    }

  private:
    friend class TeamMember;
    void close();
    // Each on a cache line of its own, because threads write to them all the time.
    struct alignas(64) Counter {
        std::atomic<std::uint32_t> value{0};
    };

    using JobFunction = void (*)(void* given, TeamMember& member);
    void run_job(JobFunction job, void* given);
    void serve(int index);
    std::uint32_t wait_for_job(std::uint32_t last);
    // Where the share of thread `owner` of `n_items` items begins.
    std::uint32_t share_begin(int owner, int n_items) const {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(n_items) *
                                          static_cast<std::uint64_t>(owner) /
                                          static_cast<std::uint64_t>(n_threads_));
    }
    // Counts items of `owner`'s share as done, of a phase of `n_items` after which `target` items
    // of the job are.
    void finish(int owner, std::uint32_t n_done, int n_items, std::uint32_t target);
    // Waits for a moment; true if `target` items are done.
    bool spin_until(std::uint32_t target, WaitingWork* idle) const;
    void sleep_until(std::uint32_t target, WaitingWork* idle);

    // Threads whose shares are counted together before all others hear of them.
    static constexpr int kTogether = 4;

    const int n_threads_;
    std::mutex turn_;
    JobFunction job_ = nullptr;
    void* given_ = nullptr;
    Counter number_;    // of the job that may be entered; 0: none
    Counter newest_;    // number of the last job
    Counter n_inside_;  // threads in a job
    Counter n_done_;    // items of the job, of shares that are whole
    Counter n_asleep_;  // threads that wait for items
    Counter is_stopped_;
    std::atomic<bool> is_closing_{false};
    std::unique_ptr<Counter[]> cursors_;  // of each thread's share: the next item
    // Of the shares of kTogether threads: items of the phase that are done. 0 between phases.
    std::unique_ptr<Counter[]> n_done_together_;
    std::vector<std::jthread> threads_;
};

inline int TeamMember::n_threads() const {
    return team_.n_threads();
}

inline int TeamMember::share_begin(int n_items) const {
    return static_cast<int>(team_.share_begin(index_, n_items));
}

inline int TeamMember::share_end(int n_items) const {
    return static_cast<int>(team_.share_begin(index_ + 1, n_items));
}

inline std::uint32_t TeamMember::take(int owner, std::uint32_t begin, std::uint32_t end) {
    // Items are numbered through all phases of a job, so a cursor below `begin` is one that nobody
    // has moved in this phase.
    std::atomic<std::uint32_t>& cursor = team_.cursors_[static_cast<std::size_t>(owner)].value;
    std::uint32_t at = cursor.load(std::memory_order_relaxed);
    while (at < end) {
        const std::uint32_t item = at < begin ? begin : at;
        if (cursor.compare_exchange_weak(at, item + 1, std::memory_order_relaxed)) {
            return item;
        }
    }
    return end;
}

template <typename Work>
void TeamMember::work_off(int owner, std::uint32_t first, int n_items, Work& work) {
    const std::uint32_t begin = first + team_.share_begin(owner, n_items);
    const std::uint32_t end = first + team_.share_begin(owner + 1, n_items);
    if (begin == end) {
        return;
    }
    std::uint32_t n_done = 0;
    for (std::uint32_t item = take(owner, begin, end); item != end;
         item = take(owner, begin, end)) {
        work(static_cast<int>(item - first));
        ++n_done;
    }
    team_.finish(owner, n_done, n_items, next_);
}

template <typename Work>
void TeamMember::share(int n_items, Work&& work, WaitingWork* idle) {
    const std::uint32_t first = next_;
    next_ += static_cast<std::uint32_t>(n_items);
    work_off(index_, first, n_items, work);
    if (team_.spin_until(next_, idle)) {
        return;
    }
    for (int i = 1; i < n_threads(); ++i) {
        work_off((index_ + i) % n_threads(), first, n_items, work);
    }
    team_.sleep_until(next_, idle);
}

}  // namespace knap
