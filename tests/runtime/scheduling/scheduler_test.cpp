// Runs and work that wait: which passes they go into, what becomes of them when they are cancelled
// or fail.
#include "runtime/scheduling/scheduler.h"

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/held_scheduler.h"

namespace knap::scheduler_test {
namespace {

using test::FakeBatchRunner;
using test::HeldScheduler;
using test::TestRun;
using test::wait_until;
using ::testing::ElementsAre;
using Tokens = std::vector<Token>;

constexpr PassLimits kCpu{.max_rows = 512, .max_shared_rows = 512, .divides_prompts = true};
constexpr PassLimits kGpu{.max_rows = 512, .max_shared_rows = 4, .divides_prompts = false};

const ModulePlan kWhole(4);
const ModulePlan kDraft = early_exit_plan(4, 2);
const ModulePlan kSameDraft = early_exit_plan(4, 2);

TEST(Scheduler, OneSessionTakesTheDirectWay) {
    // A pass that waited for others would take ten minutes.
    const SchedulerOptions patient{.min_wait_ms = 600'000, .max_wait_ms = 600'000};
    FakeBatchRunner runner(kCpu);
    Scheduler scheduler(runner, patient);
    const auto run_all_kinds = [&] {
        for (const PassKind kind : {PassKind::decode, PassKind::prompt, PassKind::search}) {
            TestRun run(3, kind, &kWhole);
            scheduler.run(run.run);
            EXPECT_TRUE(run.result.is_complete);
            EXPECT_EQ(run.result.n_rows, 3);
            EXPECT_EQ(run.result.pass.n_others, 0);
            scheduler.run_alone([] {});
        }
    };
    run_all_kinds();  // without a client
    const Scheduler::Client client(scheduler);
    run_all_kinds();
    const auto passes = runner.passes();
    ASSERT_EQ(passes.size(), 6);
    for (const auto& pass : passes) {
        EXPECT_EQ(pass.thread, std::this_thread::get_id());
        EXPECT_EQ(pass.n_rows(), 3);
    }
}

TEST(Scheduler, WaitingRunsShareAPassAndLearnOfIt) {
    HeldScheduler rig(kCpu);
    TestRun step(1, PassKind::decode, &kWhole, 100);
    TestRun verification(4, PassKind::decode, &kWhole, 200);
    TestRun prompt(9, PassKind::prompt, &kWhole, 300);
    rig.on_pass = [](auto) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
    rig.queue(step);
    rig.queue(verification);
    rig.queue(prompt);
    rig.finish();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100, 200, 300}));
    EXPECT_EQ(step.result.choices, step.tokens);
    EXPECT_EQ(verification.result.choices, verification.tokens);
    EXPECT_EQ(prompt.result.choices, prompt.tokens);
    EXPECT_EQ(step.result.pass.n_others, 13);
    EXPECT_EQ(verification.result.pass.n_others, 10);
    EXPECT_EQ(prompt.result.pass.n_others, 5);
    EXPECT_EQ(step.result.pass.n_other_tokens, 10) << "a token, and the rows of a prompt";
    EXPECT_EQ(prompt.result.pass.n_other_tokens, 2);
    EXPECT_TRUE(step.result.pass.reads_prompts);
    EXPECT_FALSE(prompt.result.pass.reads_prompts) << "of others";
    EXPECT_GE(step.result.pass.ms, 5);
}

TEST(Scheduler, EveryPlanHasPassesOfItsOwnOldestFirst) {
    HeldScheduler rig(kCpu);
    TestRun a(1, PassKind::decode, &kWhole, 100);
    TestRun b(1, PassKind::decode, &kDraft, 200);
    TestRun c(1, PassKind::decode, &kWhole, 300);
    TestRun d(1, PassKind::decode, &kSameDraft, 400);
    TestRun e(1, PassKind::decode, &kWhole, 500);
    e.run.request.entry_layer = 2;
    for (TestRun* run : {&a, &b, &c, &d, &e}) {
        rig.queue(*run);
    }
    rig.finish();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100, 300}, Tokens{200, 400}, Tokens{500}));
}

TEST(Scheduler, RunsWithoutRoomGoBehindTheOtherGroups) {
    HeldScheduler rig(kGpu);
    TestRun a(3, PassKind::decode, &kWhole, 100);
    TestRun b(2, PassKind::decode, &kWhole, 200);
    TestRun c(1, PassKind::decode, &kDraft, 300);
    TestRun d(1, PassKind::decode, &kWhole, 400);
    for (TestRun* run : {&a, &b, &c, &d}) {
        rig.queue(*run);
    }
    rig.finish();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100, 400}, Tokens{300}, Tokens{200}));
}

TEST(Scheduler, EveryRunGoesAloneWhereNothingIsShared) {
    HeldScheduler rig({.max_rows = 8, .max_shared_rows = 1});
    TestRun a(1, PassKind::decode, &kWhole, 100);
    TestRun b(8, PassKind::decode, &kWhole, 200);
    TestRun c(5, PassKind::prompt, &kWhole, 300);
    for (TestRun* run : {&a, &b, &c}) {
        rig.queue(*run);
    }
    rig.finish();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100}, Tokens{200}, Tokens{300}));
}

TEST(Scheduler, PromptsAreShortBesideDecodingRunsOnly) {
    HeldScheduler rig(kCpu);
    TestRun other(1, PassKind::decode, &kDraft, 100);  // waits for the pass of the prompt
    TestRun prompt(700, PassKind::prompt, &kWhole, 200);
    rig.queue(prompt);
    rig.queue(other);
    rig.finish();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{200}, Tokens{100}));
    EXPECT_EQ(prompt.result.n_rows, 16);
    EXPECT_EQ(prompt.result.logits.size(), 0);
    // The run comes back as it was.
    EXPECT_EQ(prompt.run.n_rows, 700);
    EXPECT_THAT(prompt.run.request.logit_rows, ElementsAre(699));

    HeldScheduler quiet(kCpu);
    TestRun short_prompt(100, PassKind::prompt, &kWhole, 900);
    quiet.queue(prompt);
    quiet.queue(short_prompt);
    quiet.finish();
    EXPECT_EQ(prompt.result.n_rows, 512);
    EXPECT_EQ(short_prompt.result.n_rows, 100);
}

TEST(Scheduler, APromptInPartsHasLogitsAtItsEnd) {
    FakeBatchRunner runner({.max_rows = 16, .max_shared_rows = 16, .divides_prompts = true});
    Scheduler scheduler(runner);
    TestRun prompt(40, PassKind::prompt, &kWhole, 0);
    RowRun& run = prompt.run;
    std::vector<int> parts;
    std::vector<Token> computed;
    while (run.n_rows > 0) {
        scheduler.run(run);
        const int n_rows = prompt.result.n_rows;
        parts.push_back(n_rows);
        computed.insert(computed.end(), prompt.result.choices.begin(), prompt.result.choices.end());
        run.n_rows -= n_rows;
        prompt.logit_rows[0] -= n_rows;
        run.request.tokens = run.request.tokens.subspan(static_cast<std::size_t>(n_rows));
        EXPECT_EQ(prompt.result.logits.size(), run.n_rows == 0 ? 1 : 0);
    }
    EXPECT_THAT(parts, ElementsAre(16, 16, 8));
    EXPECT_EQ(computed, prompt.tokens);
}

TEST(Scheduler, AnUnwantedRunLeavesTheQueueAtOnce) {
    HeldScheduler rig(kCpu);
    std::atomic<bool> is_unwanted = false;
    TestRun kept(1, PassKind::decode, &kWhole, 100);
    TestRun dropped(1, PassKind::decode, &kWhole, 200);
    dropped.cancel_if([&] { return is_unwanted.load(); });
    dropped.result.is_complete = true;
    std::latch is_dropped(1);
    rig.queue([&] {
        rig.scheduler.run(dropped.run);
        is_dropped.count_down();
    });
    rig.queue(kept);
    is_unwanted = true;
    is_dropped.wait();  // while the held pass goes on
    EXPECT_FALSE(dropped.result.is_complete);
    EXPECT_EQ(rig.scheduler.load().n_waiting, 1);
    rig.finish();
    EXPECT_TRUE(kept.result.is_complete);
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100}));
}

TEST(Scheduler, ARunningPassGoesOnForTheOthers) {
    HeldScheduler rig(kCpu);
    std::atomic<bool> is_unwanted = false;
    TestRun kept(1, PassKind::decode, &kWhole, 100);
    TestRun unwanted(1, PassKind::decode, &kWhole, 200);
    unwanted.cancel_if([&] { return is_unwanted.load(); });
    rig.on_pass = [&](auto) {
        is_unwanted = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(60));  // its owner could poll
    };
    rig.queue(kept);
    rig.queue(unwanted);
    rig.finish();
    EXPECT_TRUE(kept.result.is_complete);
    EXPECT_TRUE(unwanted.result.is_complete);  // as the runner left it
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100, 200}));
}

TEST(Scheduler, EveryRunOfAFailedPassThrows) {
    HeldScheduler rig(kCpu);
    rig.on_pass = [](std::span<RowRun* const> runs) {
        if (runs.size() == 2) {
            throw std::runtime_error("the device is lost");
        }
    };
    TestRun a(1, PassKind::decode, &kWhole, 100);
    TestRun b(1, PassKind::decode, &kWhole, 200);
    TestRun c(1, PassKind::decode, &kDraft, 300);
    std::atomic<int> n_thrown = 0;
    const auto run_and_catch = [&](TestRun& run) {
        try {
            rig.scheduler.run(run.run);
        } catch (const std::runtime_error&) {
            ++n_thrown;
        }
    };
    rig.queue([&] { run_and_catch(a); });
    rig.queue([&] { run_and_catch(b); });
    rig.queue(c);
    rig.finish();
    EXPECT_EQ(n_thrown, 2);
    EXPECT_TRUE(c.result.is_complete);
    TestRun later(1, PassKind::decode, &kWhole, 400);
    rig.scheduler.run(later.run);
    EXPECT_TRUE(later.result.is_complete);
}

TEST(Scheduler, TheDirectWayThrowsAndGoesOn) {
    FakeBatchRunner runner(kCpu);
    Scheduler scheduler(runner);
    TestRun run(1, PassKind::decode, &kWhole);
    runner.on_pass = [](auto) { throw std::runtime_error("the device is lost"); };
    EXPECT_THROW(scheduler.run(run.run), std::runtime_error);
    EXPECT_THROW(scheduler.run_alone([] { throw std::runtime_error("lost"); }), std::runtime_error);
    runner.on_pass = nullptr;
    scheduler.run(run.run);
    EXPECT_TRUE(run.result.is_complete);
}

TEST(Scheduler, WorkRunsAloneInItsTurnOnItsThread) {
    HeldScheduler rig(kCpu);
    TestRun before(1, PassKind::decode, &kWhole, 100);
    TestRun after(1, PassKind::decode, &kDraft, 200);
    TestRun meanwhile(1, PassKind::decode, &kDraft, 300);
    std::vector<Token> order;  // of what runs, one at a time
    std::jthread arriving;
    rig.on_pass = [&](std::span<RowRun* const> runs) {
        order.push_back(runs.front()->request.tokens.front());
    };
    rig.queue(before);
    rig.queue([&] {
        const auto thread = std::this_thread::get_id();
        rig.scheduler.run_alone([&] {
            EXPECT_EQ(std::this_thread::get_id(), thread);
            EXPECT_FALSE(rig.runner.is_running());
            order.push_back(150);
            arriving = std::jthread([&] { rig.scheduler.run(meanwhile.run); });
            const std::size_t n_passes = rig.passes().size();
            wait_until([&] {
                return rig.scheduler.load().n_waiting == 2 || rig.passes().size() > n_passes;
            });
            EXPECT_EQ(rig.passes().size(), n_passes);
        });
    });
    rig.queue(after);
    rig.finish();
    arriving.join();
    EXPECT_THAT(rig.passes(), ElementsAre(Tokens{100}, Tokens{200, 300}));
    EXPECT_THAT(order, ElementsAre(100, 150, 200));
}

TEST(Scheduler, WorkThatFailsThrowsToItsCallerOnly) {
    HeldScheduler rig(kCpu);
    TestRun before(1, PassKind::decode, &kWhole, 100);
    TestRun after(1, PassKind::decode, &kWhole, 200);
    std::atomic<int> n_thrown = 0;
    rig.queue(before);
    rig.queue([&] {
        try {
            rig.scheduler.run_alone([] { throw std::runtime_error("the device is lost"); });
        } catch (const std::runtime_error&) {
            ++n_thrown;
        }
    });
    rig.queue(after);
    rig.finish();
    EXPECT_EQ(n_thrown, 1);
    EXPECT_TRUE(before.result.is_complete);
    EXPECT_TRUE(after.result.is_complete);
}

}  // namespace
}  // namespace knap::scheduler_test
