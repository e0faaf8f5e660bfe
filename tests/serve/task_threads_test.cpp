#include "serve/task_threads.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace knap::test::task_threads_test {
namespace {

TEST(TaskThreads, TheirEndRunsWhatIsQueued) {
    std::atomic<int> n_run = 0;
    {
        TaskThreads threads(2);
        for (int i = 0; i < 100; ++i) {
            threads.post([&] { ++n_run; });
        }
    }
    EXPECT_EQ(n_run, 100);
}

TEST(TaskThreads, ATaskThatThrowsEndsAlone) {
    std::atomic<int> n_run = 0;
    {
        TaskThreads threads(1);
        threads.post([] { throw std::runtime_error("a fault of this test"); });
        threads.post([&] { ++n_run; });
    }
    EXPECT_EQ(n_run, 1);
}

// Each row is posted by a thread of its own, while two threads run them all.
TEST(SerialTasks, RunOneAfterTheOtherInOrder) {
    constexpr int kRows = 4;
    constexpr int kTasks = 500;
    std::vector<std::vector<int>> seen(kRows);  // without a lock: one task of a row at a time
    {
        TaskThreads threads(2);
        std::vector<std::thread> posters;
        for (int row = 0; row < kRows; ++row) {
            posters.emplace_back([&, row] {
                SerialTasks tasks(threads);
                const auto note = [&list = seen[static_cast<std::size_t>(row)]](int number) {
                    return [&list, number] { list.push_back(number); };
                };
                tasks.post(note(1));
                tasks.start(note(0));
                for (int i = 2; i < kTasks; ++i) {
                    tasks.post(note(i));
                }
            });
        }
        for (std::thread& poster : posters) {
            poster.join();
        }
    }
    for (const std::vector<int>& list : seen) {
        ASSERT_EQ(list.size(), kTasks);
        for (int i = 0; i < kTasks; ++i) {
            EXPECT_EQ(list[static_cast<std::size_t>(i)], i);
        }
    }
}

}  // namespace
}  // namespace knap::test::task_threads_test
