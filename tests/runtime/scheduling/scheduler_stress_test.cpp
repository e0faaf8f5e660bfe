// Many threads with runs of every kind at random: every run is computed once with exactly its rows,
// and nothing blocks.
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/scheduling/scheduler.h"
#include "support/fake_batch_runner.h"

namespace knap::scheduler_stress_test {
namespace {

using test::FakeBatchRunner;
using test::TestRun;

constexpr int kThreads = 8;
constexpr int kRuns = 300;  // of each thread

struct StressCase {
    PassLimits limits;
    unsigned seed;
};

class SchedulerStress : public testing::TestWithParam<StressCase> {
  protected:
    SchedulerStress()
        : plans{ModulePlan(4), early_exit_plan(4, 2), early_exit_plan(4, 3)},
          runner(GetParam().limits),
          scheduler(runner, {.quiet_ms = 0.5}) {
        runner.on_pass = [this](std::span<RowRun* const> runs) {
            EXPECT_FALSE(is_work_running);
            const int n_pass = n_passes++;
            if (n_pass % 4 == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            }
            if (n_pass % 50 == 49) {
                throw std::runtime_error("lost");
            }
            for (const RowRun* run : runs) {
                n_computed += run->n_rows;
            }
        };
    }

    void serve(unsigned thread) {
        std::mt19937 random(GetParam().seed * kThreads + thread);
        const auto draw = [&](int from, int to) {
            return std::uniform_int_distribution<int>(from, to)(random);
        };
        std::optional<Scheduler::Client> client;
        for (int i = 0; i < kRuns; ++i) {
            if (i % 40 == 0) {  // a new request; every fourth one is served without a client
                client.reset();
                if (draw(0, 3) != 0) {
                    client.emplace(scheduler);
                }
            }
            const int what = draw(0, 9);
            if (what == 0) {
                work_alone();
            } else {
                const PassKind kind = what == 1   ? PassKind::search
                                      : what <= 4 ? PassKind::prompt
                                                  : PassKind::decode;
                const int n_rows = draw(1, kind == PassKind::prompt ? 30 : 4);
                const Token first =
                    static_cast<Token>(1000 * thread + 7 * static_cast<unsigned>(i));
                TestRun run(n_rows, kind, &plans[static_cast<std::size_t>(draw(0, 2))], first);
                compute(run, draw(0, 19) == 0);
            }
            if (draw(0, 3) == 0) {
                std::this_thread::sleep_for(std::chrono::microseconds(draw(0, 300)));
            }
        }
    }

    void work_alone() {
        scheduler.run_alone([this] {
            EXPECT_FALSE(is_work_running.exchange(true));
            EXPECT_FALSE(runner.is_running());
            is_work_running = false;
        });
    }

    // Until all rows are computed, or the run was dropped.
    void compute(TestRun& run, bool is_cancelled) {
        std::atomic<int> n_polls = 0;
        if (is_cancelled) {
            run.cancel_if([&] { return ++n_polls > 1; });
        }
        std::vector<Token> computed;
        while (computed.size() < run.tokens.size()) {
            try {
                scheduler.run(run.run);
            } catch (const std::runtime_error&) {
                ++n_thrown;
                continue;
            }
            if (!run.result.is_complete) {
                const bool is_search = run.run.request.kind == PassKind::search;
                EXPECT_TRUE(is_cancelled || is_search);
                ++n_dropped;
                return;
            }
            const auto n_rows = static_cast<std::size_t>(run.result.n_rows);
            EXPECT_EQ(run.result.choices.size(), n_rows);
            n_received += run.result.n_rows;
            computed.insert(computed.end(), run.result.choices.begin(), run.result.choices.end());
            run.run.request.tokens = run.run.request.tokens.subspan(n_rows);
            run.run.n_rows -= run.result.n_rows;
            run.logit_rows[0] -= run.result.n_rows;
            EXPECT_EQ(run.result.logits.size(), run.run.n_rows == 0 ? 1 : 0);
        }
        EXPECT_EQ(computed, run.tokens);
    }

    const std::vector<ModulePlan> plans;
    FakeBatchRunner runner;
    Scheduler scheduler;
    std::atomic<bool> is_work_running = false;
    std::atomic<int> n_passes = 0;
    std::atomic<int> n_computed = 0;  // rows
    std::atomic<int> n_received = 0;
    std::atomic<int> n_thrown = 0;
    std::atomic<int> n_dropped = 0;
};

TEST_P(SchedulerStress, EveryRunIsComputedOnce) {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
        threads.emplace_back([this, i] { serve(i); });
    }
    threads.clear();
    EXPECT_EQ(n_computed, n_received);
    EXPECT_GT(n_thrown, 0);
    EXPECT_GT(n_dropped, 0);
    EXPECT_EQ(scheduler.load().n_sessions, 0);
    EXPECT_EQ(scheduler.load().n_waiting, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Limits,
    SchedulerStress,
    testing::Values(StressCase{{.max_rows = 64, .max_shared_rows = 64, .divides_prompts = true}, 1},
                    StressCase{{.max_rows = 16, .max_shared_rows = 16, .divides_prompts = true}, 2},
                    StressCase{{.max_rows = 64, .max_shared_rows = 4, .divides_prompts = false}, 3},
                    StressCase{{.max_rows = 64, .max_shared_rows = 1, .divides_prompts = false},
                               4}));

}  // namespace
}  // namespace knap::scheduler_stress_test
