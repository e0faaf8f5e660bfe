// Sessions that are being served: how their passes stay together, and how they make room for each
// other.
#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "runtime/scheduling/scheduler.h"
#include "support/held_scheduler.h"

namespace knap::scheduler_sessions_test {
namespace {

using std::chrono::milliseconds;
using test::FakeBatchRunner;
using test::HeldScheduler;
using test::TestRun;
using test::wait_until;
using ::testing::ElementsAre;
using Client = Scheduler::Client;
using Tokens = std::vector<Token>;

constexpr PassLimits kLimits{.max_rows = 512, .max_shared_rows = 512, .divides_prompts = true};
constexpr double kForever = 600'000;

const ModulePlan kWhole(4);
const ModulePlan kDraft = early_exit_plan(4, 2);

// Sessions that decode `n_steps` tokens each; returns the number of passes.
std::size_t decode_together(const SchedulerOptions& options, int n_sessions, int n_steps) {
    FakeBatchRunner runner(kLimits);
    runner.on_pass = [](auto) { std::this_thread::sleep_for(milliseconds(2)); };
    Scheduler scheduler(runner, options);
    std::barrier start(n_sessions);
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(n_sessions));
    for (int i = 0; i < n_sessions; ++i) {
        threads.emplace_back([&, i] {
            const Client client(scheduler);
            start.arrive_and_wait();
            for (int step = 0; step < n_steps; ++step) {
                TestRun run(1, PassKind::decode, &kWhole, 100 * i);
                scheduler.run(run.run);
                EXPECT_EQ(run.result.choices, run.tokens);
            }
        });
    }
    threads.clear();
    return runner.passes().size();
}

TEST(SchedulerSessions, SessionsInStepShareEveryPass) {
    // As long as nobody is late, only the first passes and the last can be smaller.
    const std::size_t n_passes =
        decode_together({.min_wait_ms = kForever, .max_wait_ms = kForever}, 4, 50);
    EXPECT_LE(n_passes, 54);
    EXPECT_GE(n_passes, 50);
}

TEST(SchedulerSessions, SessionsStayTogetherWithTheUsualWait) {
    const std::size_t n_passes = decode_together({}, 4, 50);
    EXPECT_LE(n_passes, 100);  // 200 alone, 50 together; some are late on a busy machine
}

TEST(SchedulerSessions, ALateSessionIsWaitedForOnce) {
    constexpr int kWaitMs = 400;
    HeldScheduler rig(kLimits, {.min_wait_ms = kWaitMs, .max_wait_ms = kWaitMs});
    std::latch is_done(1);
    std::latch is_late(1);
    TestRun late(1, PassKind::decode, &kWhole, 100);
    rig.queue([&] {
        const Client client(rig.scheduler);
        rig.scheduler.run(late.run);
        is_late.count_down();
        is_done.wait();  // a callback of its user
    });
    rig.open();
    is_late.wait();
    const Client client(rig.scheduler);
    const Stopwatch watch;
    for (int i = 0; i < 20; ++i) {
        TestRun run(1, PassKind::decode, &kWhole, 200);
        rig.scheduler.run(run.run);
    }
    const double ms = watch.elapsed_ms();
    EXPECT_GE(ms, kWaitMs);
    EXPECT_LE(ms, 10 * kWaitMs);
    is_done.count_down();
}

TEST(SchedulerSessions, NobodyWaitsForASessionThatLeaves) {
    HeldScheduler rig(kLimits, {.min_wait_ms = kForever, .max_wait_ms = kForever});
    TestRun stays(1, PassKind::decode, &kWhole, 100);
    TestRun leaves(1, PassKind::decode, &kWhole, 200);
    std::latch may_leave(1);
    rig.queue([&] {
        const Client client(rig.scheduler);
        rig.scheduler.run(leaves.run);
        may_leave.wait();
    });
    rig.queue([&] {
        const Client client(rig.scheduler);
        rig.scheduler.run(stays.run);
        rig.scheduler.run(stays.run);
    });
    rig.open();
    wait_until([&] { return rig.scheduler.load().n_waiting == 1; });  // for the one that is due
    may_leave.count_down();
    rig.finish();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100, 200}, Tokens{100}));
}

TEST(SchedulerSessions, NobodyWaitsForMoreThanAFullPass) {
    const PassLimits limits{.max_rows = 8, .max_shared_rows = 2};
    HeldScheduler rig(limits, {.min_wait_ms = kForever, .max_wait_ms = kForever});
    std::latch is_done(1);
    std::latch is_due(1);
    TestRun due(1, PassKind::decode, &kWhole, 100);
    rig.queue([&] {
        const Client client(rig.scheduler);
        rig.scheduler.run(due.run);
        is_due.count_down();
        is_done.wait();
    });
    rig.open();
    is_due.wait();
    TestRun full(2, PassKind::decode, &kWhole, 200);
    rig.scheduler.run(full.run);
    rig.scheduler.run_alone([] {});
    rig.start([&] {
        TestRun half(1, PassKind::decode, &kWhole, 300);
        rig.scheduler.run(half.run);
    });
    wait_until([&] { return rig.scheduler.load().n_waiting == 1; });
    TestRun other_half(1, PassKind::decode, &kWhole, 400);
    rig.scheduler.run(other_half.run);
    is_done.count_down();
    rig.finish();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100}, Tokens{200}, Tokens{300, 400}));
}

TEST(SchedulerSessions, PromptsAreShortWhileAnotherSessionDecodes) {
    FakeBatchRunner runner(kLimits);
    Scheduler scheduler(runner);
    const Client client(scheduler);
    const auto read_prompt = [&] {
        TestRun prompt(400, PassKind::prompt, &kWhole);
        scheduler.run(prompt.run);
        return prompt.result.n_rows;
    };
    std::latch decodes(1);
    std::jthread other([&](const std::stop_token& stop) {
        const Client decoding(scheduler);
        for (bool is_first = true; !stop.stop_requested(); is_first = false) {
            TestRun step(1, PassKind::decode, &kDraft);  // shares no pass with the prompt
            scheduler.run(step.run);
            if (is_first) {
                decodes.count_down();
            }
            std::this_thread::sleep_for(milliseconds(1));
        }
    });
    decodes.wait();
    EXPECT_EQ(read_prompt(), 16);
    other.request_stop();
    other.join();
    EXPECT_EQ(read_prompt(), 400);
}

// A search, on a session of its own. Returns whether it was computed.
bool search(Scheduler& scheduler) {
    const Client client(scheduler);
    TestRun run(1, PassKind::search, &kWhole, 900);
    scheduler.run(run.run);
    return run.result.is_complete;
}

TEST(SchedulerSessions, ASearchIsNotComputedDuringAPassOrBeforeOne) {
    HeldScheduler rig(kLimits, {.quiet_ms = 0});
    TestRun step(1, PassKind::decode, &kWhole, 100);
    rig.queue(step);
    EXPECT_FALSE(search(rig.scheduler));
    rig.finish();
    EXPECT_TRUE(search(rig.scheduler));
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100}, Tokens{900}));
}

TEST(SchedulerSessions, ASearchGoesOnWhileTheOthersAreQuiet) {
    HeldScheduler rig(kLimits, {.quiet_ms = 100});
    rig.open();
    rig.scheduler.run_alone([] {});  // after the pass that was held
    EXPECT_TRUE(search(rig.scheduler));
    const Client other(rig.scheduler);
    std::jthread([&] { EXPECT_FALSE(search(rig.scheduler)); }).join();  // it has just come
    std::this_thread::sleep_for(milliseconds(150));
    std::jthread([&] { EXPECT_TRUE(search(rig.scheduler)); }).join();
    TestRun step(1, PassKind::decode, &kWhole, 100);
    rig.scheduler.run(step.run);
    std::jthread([&] { EXPECT_FALSE(search(rig.scheduler)); }).join();
}

TEST(SchedulerSessions, LoadIsThatOfTheOthers) {
    HeldScheduler rig(kLimits, {.min_wait_ms = kForever, .max_wait_ms = kForever});
    EXPECT_EQ(rig.scheduler.load().n_sessions, 0);
    std::barrier both(2);
    const auto decode = [&](int n_rows, double n_other_rows) {
        const Client client(rig.scheduler);
        both.arrive_and_wait();
        EXPECT_EQ(rig.scheduler.load().n_sessions, 1);
        EXPECT_EQ(rig.scheduler.load().others.n_rows, 0);
        for (int i = 0; i < 30; ++i) {
            TestRun run(n_rows, PassKind::decode, &kWhole);
            rig.scheduler.run(run.run);
        }
        EXPECT_NEAR(rig.scheduler.load().others.n_rows, n_other_rows, 0.01);
        both.arrive_and_wait();
    };
    rig.start([&] { decode(1, 4); });
    rig.start([&] { decode(4, 1); });
    wait_until([&] { return rig.scheduler.load().n_waiting == 2; });
    EXPECT_EQ(rig.scheduler.load().n_sessions, 2);  // for a thread that is none of them
    EXPECT_EQ(rig.scheduler.load().others.n_rows, 0);
    rig.finish();
    EXPECT_EQ(rig.scheduler.load().n_waiting, 0);
}

}  // namespace
}  // namespace knap::scheduler_sessions_test
