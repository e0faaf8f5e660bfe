// A scheduler over a FakeBatchRunner whose first pass is held, so that runs can queue up behind it
// in a known order.
#pragma once

#include <functional>
#include <latch>
#include <span>
#include <thread>
#include <vector>

#include "runtime/scheduling/scheduler.h"
#include "support/fake_batch_runner.h"

namespace knap::test {

// Polls; fails the test after a minute.
void wait_until(const std::function<bool()>& is_true);

class HeldScheduler {
  public:
    explicit HeldScheduler(const PassLimits& limits, const SchedulerOptions& options = {});
    ~HeldScheduler() { finish(); }

    // On a thread of its own. queue() returns when what it does waits for a pass.
    void start(std::function<void()> body) { threads_.emplace_back(std::move(body)); }
    void queue(std::function<void()> body);
    void queue(TestRun& run);

    void open() { gate_.count_down(); }  // lets passes go on
    void finish();                       // opens, and waits for all threads
    // The runs of each pass after the held one, by their first tokens.
    std::vector<std::vector<Token>> passes() const;

    FakeBatchRunner runner;
    Scheduler scheduler;
    // In every pass but the held one.
    std::function<void(std::span<RowRun* const> runs)> on_pass;

  private:
    ModulePlan plan_{1};  // of no other run
    TestRun held_;
    std::latch gate_{1};
    std::vector<std::jthread> threads_;
};

}  // namespace knap::test
