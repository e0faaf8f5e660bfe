#include "support/held_scheduler.h"

#include <chrono>
#include <utility>

#include <gtest/gtest.h>

namespace knap::test {

void wait_until(const std::function<bool()>& is_true) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_true()) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

HeldScheduler::HeldScheduler(const PassLimits& limits, const SchedulerOptions& options)
    : runner(limits), scheduler(runner, options), held_(1, PassKind::decode, &plan_) {
    runner.on_pass = [this](std::span<RowRun* const> runs) {
        gate_.wait();
        if (runs.front() != &held_.run && on_pass) {
            on_pass(runs);
        }
    };
    start([this] { scheduler.run(held_.run); });
    wait_until([this] { return runner.is_running(); });
}

void HeldScheduler::queue(std::function<void()> body) {
    const int n_waiting = scheduler.load().n_waiting;
    start(std::move(body));
    wait_until([&] { return scheduler.load().n_waiting > n_waiting; });
}

void HeldScheduler::queue(TestRun& run) {
    queue([this, &run] { scheduler.run(run.run); });
}

void HeldScheduler::finish() {
    if (!gate_.try_wait()) {
        open();
    }
    threads_.clear();
}

std::vector<std::vector<Token>> HeldScheduler::passes() const {
    std::vector<std::vector<Token>> tokens;
    for (const FakeBatchRunner::SeenPass& pass : runner.passes()) {
        tokens.push_back(pass.first_tokens());
    }
    tokens.erase(tokens.begin());
    return tokens;
}

}  // namespace knap::test
