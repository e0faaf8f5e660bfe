#include "device/thread_team.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"

namespace knap::test::thread_team_test {
namespace {

class ThreadTeams : public ::testing::TestWithParam<int> {
  protected:
    ThreadTeam team_{GetParam()};
};

TEST_P(ThreadTeams, ComputeEveryItemOnce) {
    for (const int n_items : {0, 1, 2, 7, 100}) {
        std::vector<std::atomic<int>> counts(static_cast<std::size_t>(n_items));
        team_.run([&](TeamMember& member) {
            member.share(n_items, [&](int item) { ++counts[static_cast<std::size_t>(item)]; });
        });
        for (const std::atomic<int>& count : counts) {
            EXPECT_EQ(count, 1) << n_items;
        }
    }
}

// Each phase reads what all items of the one before have written.
TEST_P(ThreadTeams, FinishAPhaseBeforeTheNext) {
    constexpr int kItems = 13;
    constexpr int kPhases = 200;
    std::vector<int> numbers(kItems, 1);
    std::vector<int> sums(kItems);
    team_.run([&](TeamMember& member) {
        for (int phase = 0; phase < kPhases; ++phase) {
            member.share(kItems, [&](int item) {
                sums[static_cast<std::size_t>(item)] =
                    std::accumulate(numbers.begin(), numbers.end(), 0) % 1000;
            });
            member.share(kItems, [&](int item) {
                numbers[static_cast<std::size_t>(item)] =
                    sums[static_cast<std::size_t>(item)] + item;
            });
        }
    });
    std::vector<int> expected(kItems, 1);
    for (int phase = 0; phase < kPhases; ++phase) {
        const int sum = std::accumulate(expected.begin(), expected.end(), 0) % 1000;
        std::iota(expected.begin(), expected.end(), sum);
    }
    EXPECT_EQ(numbers, expected);
}

TEST_P(ThreadTeams, RunManyJobs) {
    constexpr int kJobs = 500;
    std::atomic<int> n_done = 0;
    for (int i = 0; i < kJobs; ++i) {
        team_.run([&](TeamMember& member) { member.share(3, [&](int /*item*/) { ++n_done; }); });
    }
    EXPECT_EQ(n_done, 3 * kJobs);
}

// Longer than threads spin, so that they fall asleep.
TEST_P(ThreadTeams, WakeAfterAPause) {
    std::atomic<int> n_done = 0;
    std::atomic<int> n_early = 0;
    for (int i = 1; i <= 5; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        team_.run([&](TeamMember& member) {
            member.share(4, [&](int item) {
                std::this_thread::sleep_for(std::chrono::milliseconds(item == 3 ? 2 : 0));
                ++n_done;
            });
            member.share(4, [&](int /*item*/) { n_early += n_done < 4 * i ? 1 : 0; });
        });
    }
    EXPECT_EQ(n_done, 5 * 4);
    EXPECT_EQ(n_early, 0) << "a phase waits for the slowest item of the one before";
}

TEST_P(ThreadTeams, EndAJobThatIsStopped) {
    std::atomic<int> n_phases = 0;
    team_.run([&](TeamMember& member) {
        for (int phase = 0; phase < 100 && !member.is_stopped(); ++phase) {
            if (phase == 3) {  // whoever comes there: the others may take its items and be ahead
                member.stop();
            }
            member.share(2, [&](int item) { n_phases += item == 0 ? 1 : 0; });
        }
    });
    EXPECT_EQ(n_phases, 4);
    std::atomic<bool> is_stopped = false;
    team_.run([&](TeamMember& member) {
        member.share(4, [&](int /*item*/) { is_stopped = is_stopped || member.is_stopped(); });
    });
    EXPECT_FALSE(is_stopped) << "the next job goes on";
}

TEST_P(ThreadTeams, TakeTurnsForSeveralCallers) {
    constexpr int kJobs = 100;
    int n_done = 0;  // no two jobs at a time
    const auto call = [&] {
        for (int i = 0; i < kJobs; ++i) {
            team_.run(
                [&](TeamMember& member) { member.share(1, [&](int /*item*/) { ++n_done; }); });
        }
    };
    std::thread other(call);
    call();
    other.join();
    EXPECT_EQ(n_done, 2 * kJobs);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadTeams, ::testing::Values(1, 2, 3, 4, 5, 8, 18));

// Counts its steps; `n_left` of them.
class CountedSteps final : public WaitingWork {
  public:
    explicit CountedSteps(int n_left) : n_left_(n_left) {}
    bool step() override {
        ++n_steps;
        return n_left_-- > 1;
    }
    int n_steps = 0;

  private:
    int n_left_;
};

// The caller has nothing to do in the phase, and waits for the thread that has.
int count_idle_steps(int n_left) {
    ThreadTeam team(2);
    CountedSteps idle(n_left);
    std::atomic<bool> is_taken = false;
    team.run([&](TeamMember& member) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (member.index() == 0 && !is_taken && std::chrono::steady_clock::now() < end) {
            std::this_thread::yield();
        }
        member.share(
            1,
            [&](int /*item*/) {
                is_taken = true;
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            },
            member.index() == 0 ? &idle : nullptr);
    });
    return idle.n_steps;
}

TEST(ThreadTeam, AThreadThatWaitsDoesIdleWork) {
    EXPECT_GT(count_idle_steps(1 << 30), 4);
    // It is asked once more after a look for items of others.
    EXPECT_GE(count_idle_steps(3), 3);
    EXPECT_LE(count_idle_steps(3), 4);
}

TEST(ThreadTeam, SharesOfAPhaseFollowEachOther) {
    ThreadTeam team(3);
    for (const int n_items : {0, 1, 5, 16}) {
        int begin = 0;
        for (int i = 0; i < 3; ++i) {
            const TeamMember member(team, i);
            EXPECT_EQ(member.share_begin(n_items), begin);
            begin = member.share_end(n_items);
        }
        EXPECT_EQ(begin, n_items);
    }
}

// One thread holds an item until all others of the phase are done, also those of its own share.
void expect_help(int n_threads) {
    constexpr int kItems = 20;
    ThreadTeam team(n_threads);
    std::atomic<int> n_others = 0;
    bool is_helped = false;
    std::atomic<int> n_after = 0;
    team.run([&](TeamMember& member) {
        member.share(kItems, [&](int item) {
            if (item != kItems / n_threads) {  // the first of the second thread's share
                ++n_others;
                return;
            }
            const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
            while (n_others < kItems - 1 && std::chrono::steady_clock::now() < end) {
                std::this_thread::yield();
            }
            is_helped = n_others == kItems - 1;
        });
        member.share(kItems, [&](int /*item*/) { ++n_after; });
    });
    EXPECT_TRUE(is_helped) << n_threads << " threads";
    EXPECT_EQ(n_after, kItems) << n_threads << " threads";
}

TEST(ThreadTeam, OtherThreadsTakeWhatASlowOneHasNotBegun) {
    for (const int n_threads : {2, 6}) {
        expect_help(n_threads);
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take all addresses
// A stack for every thread does not fit in what is left.
[[noreturn]] void start_too_many() {
    std::ifstream sizes("/proc/self/statm");
    rlim_t n_pages = 0;
    sizes >> n_pages;
    const rlim_t n_bytes =
        n_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
    const rlimit limit{.rlim_cur = n_bytes, .rlim_max = n_bytes};
    setrlimit(RLIMIT_AS, &limit);
    try {
        const ThreadTeam team(256);
    } catch (const Error& error) {
        std::cerr << error.what() << std::endl;
        std::_Exit(3);
    }
    std::_Exit(0);
}

TEST(ThreadTeamDeathTest, ThreadsThatCannotBeStartedAreAnError) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(start_too_many(), testing::ExitedWithCode(3),
                "^threads: expected to start 255, started [0-9]+: ");
}
#endif

}  // namespace
}  // namespace knap::test::thread_team_test
