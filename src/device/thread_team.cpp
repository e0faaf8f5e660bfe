#include "device/thread_team.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/rounding.h"

namespace knap {
namespace {

using Clock = std::chrono::steady_clock;

// The others usually finish a phase within a microsecond.
constexpr auto kPhasePatience = std::chrono::microseconds(3);
// After that, what is left was begun by a thread that may have lost its core.
constexpr auto kStragglerPatience = std::chrono::microseconds(10);
// Between two passes of a text there are some ten microseconds. Waking a thread takes longer.
constexpr auto kJobPatience = std::chrono::microseconds(100);

void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// Polls until `is_over` or the time is up; returns is_over(). Steps `idle` meanwhile, if there is
// any.
template <typename Condition>
bool spin(std::chrono::microseconds patience, Condition is_over, WaitingWork* idle = nullptr) {
    constexpr int kPolls = 32;  // between looks at the clock
    const Clock::time_point end = Clock::now() + patience;
    do {
        for (int i = 0; i < kPolls; ++i) {
            if (is_over()) {
                return true;
            }
            if (idle == nullptr || !idle->step()) {
                idle = nullptr;
                pause_briefly();
            }
        }
    } while (Clock::now() < end);
    return is_over();
}

}  // namespace

void TeamMember::stop() {
    team_.is_stopped_.value.store(1, std::memory_order_relaxed);
}

bool TeamMember::is_stopped() const {
    return team_.is_stopped_.value.load(std::memory_order_relaxed) != 0;
}

ThreadTeam::ThreadTeam(int n_threads)
    : n_threads_(n_threads),
      cursors_(new Counter[static_cast<std::size_t>(n_threads)]),
      n_done_together_(new Counter[static_cast<std::size_t>(steps_for(n_threads, kTogether))]) {
    KNAP_ASSERT(n_threads > 0, "a team has a thread");
    threads_.reserve(static_cast<std::size_t>(n_threads));
    try {
        for (int index = 1; index < n_threads; ++index) {
            threads_.emplace_back([this, index] { serve(index); });
        }
    } catch (const std::system_error& error) {
        const std::size_t n_started = threads_.size();
        close();
        fail("threads: expected to start ", n_threads - 1, ", started ", n_started, ": ",
             error.what());
    }
}

ThreadTeam::~ThreadTeam() {
    close();
}

// Those that have started end.
void ThreadTeam::close() {
    is_closing_.store(true, std::memory_order_relaxed);
    newest_.value.fetch_add(1, std::memory_order_release);
    newest_.value.notify_all();
}

void ThreadTeam::run_job(JobFunction job, void* given) {
    const std::scoped_lock lock(turn_);
    // Nobody is inside, so these are the caller's alone.
    job_ = job;
    given_ = given;
    n_done_.value.store(0, std::memory_order_relaxed);
    is_stopped_.value.store(0, std::memory_order_relaxed);
    for (int i = 0; i < n_threads_; ++i) {
        cursors_[static_cast<std::size_t>(i)].value.store(0, std::memory_order_relaxed);
    }
    const std::uint32_t number = newest_.value.load(std::memory_order_relaxed) + 1;
    number_.value.store(number, std::memory_order_seq_cst);
    newest_.value.store(number, std::memory_order_release);
    newest_.value.notify_all();
    TeamMember member(*this, 0);
    job(given, member);
    // Who comes now finds the job closed; who has come is waited for. One of the two sees the
    // other: both sides write, then read, in the one order of all such operations.
    number_.value.store(0, std::memory_order_seq_cst);
    std::uint32_t n_inside = n_inside_.value.load(std::memory_order_seq_cst);
    while (n_inside != 0 && !spin(kStragglerPatience, [&] {
               n_inside = n_inside_.value.load(std::memory_order_seq_cst);
               return n_inside == 0;
           })) {
        n_inside_.value.wait(n_inside, std::memory_order_seq_cst);
        n_inside = n_inside_.value.load(std::memory_order_seq_cst);
    }
}

void ThreadTeam::serve(int index) {
    std::uint32_t last = 0;
    while (true) {
        last = wait_for_job(last);
        if (is_closing_.load(std::memory_order_relaxed)) {
            return;
        }
        n_inside_.value.fetch_add(1, std::memory_order_seq_cst);
        if (number_.value.load(std::memory_order_seq_cst) == last) {
            TeamMember member(*this, index);
            job_(given_, member);
        }
        if (n_inside_.value.fetch_sub(1, std::memory_order_seq_cst) == 1) {
            n_inside_.value.notify_all();
        }
    }
}

// The number of a job after `last`.
std::uint32_t ThreadTeam::wait_for_job(std::uint32_t last) {
    std::uint32_t newest = last;
    const auto has_come = [&] {
        newest = newest_.value.load(std::memory_order_acquire);
        return newest != last;
    };
    while (!spin(kJobPatience, has_come)) {
        newest_.value.wait(last, std::memory_order_acquire);
    }
    return newest;
}

void ThreadTeam::finish(int owner, std::uint32_t n_done, int n_items, std::uint32_t target) {
    if (n_done == 0) {
        return;
    }
    if (n_threads_ > kTogether) {
        const int first = owner - owner % kTogether;
        const std::uint32_t n_together =
            share_begin(std::min(first + kTogether, n_threads_), n_items) -
            share_begin(first, n_items);
        std::atomic<std::uint32_t>& together =
            n_done_together_[static_cast<std::size_t>(owner / kTogether)].value;
        if (together.fetch_add(n_done, std::memory_order_acq_rel) + n_done < n_together) {
            return;
        }
        // Nobody counts here again before the next phase, which begins after what follows.
        together.store(0, std::memory_order_relaxed);
        n_done = n_together;
    }
    const std::uint32_t n_all = n_done_.value.fetch_add(n_done, std::memory_order_seq_cst) + n_done;
    if (n_all == target && n_asleep_.value.load(std::memory_order_seq_cst) > 0) {
        n_done_.value.notify_all();
    }
}

bool ThreadTeam::spin_until(std::uint32_t target, WaitingWork* idle) const {
    const auto is_done = [&] { return n_done_.value.load(std::memory_order_acquire) >= target; };
    return is_done() || spin(kPhasePatience, is_done, idle);
}

void ThreadTeam::sleep_until(std::uint32_t target, WaitingWork* idle) {
    const auto is_done = [&] { return n_done_.value.load(std::memory_order_acquire) >= target; };
    if (is_done() || spin(kStragglerPatience, is_done, idle)) {
        return;
    }
    n_asleep_.value.fetch_add(1, std::memory_order_seq_cst);
    for (std::uint32_t n_done = n_done_.value.load(std::memory_order_seq_cst); n_done < target;
         n_done = n_done_.value.load(std::memory_order_seq_cst)) {
        n_done_.value.wait(n_done, std::memory_order_seq_cst);
    }
    n_asleep_.value.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace knap
